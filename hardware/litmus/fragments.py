"""Pieces of PTX that both placements of a test have: delays, stress, results. ``k`` tells their registers apart."""

from __future__ import annotations

from hardware.litmus import settings
from mcheck.ir.type_sizes import type_size


def declared(k: int) -> list[str]:
    """The registers of the pieces."""
    return [
        f".reg .u32 %i{k}, %base{k}, %l{k}, %round{k}, %n{k}, %m{k}, %stuck{k}, %polls{k}, %s{k}, %acc{k}, %v{k};",
        f".reg .u64 %g{k}, %to{k}, %w{k}; .reg .pred %p{k}, %q{k};",
    ]


def register(name: str, kind: str) -> str:
    """The declaration of a register that the test names; no register has less than 16 bits."""
    return f".reg .{'pred' if kind == 'pred' else f'b{max(8 * type_size(kind), 16)}'} {name};"


def delay(k: int) -> list[str]:
    """A random delay: of the warp with the first lane's instance ``%base``, in this round, of this code."""
    return [
        f"ld.param.u32 %n{k}, [A+{settings.at('seed')}];",
        f"mad.lo.u32 %v{k}, %round{k}, 0x9e3779b1, %n{k};",
        f"shr.u32 %n{k}, %base{k}, 5;",
        f"mad.lo.u32 %v{k}, %n{k}, 0x85ebca77, %v{k};",
        f"add.u32 %v{k}, %v{k}, {k * 0x27D4EB2F % 2**32};",
        f"shr.u32 %n{k}, %v{k}, 15;",
        f"xor.b32 %v{k}, %v{k}, %n{k};",
        f"mul.lo.u32 %v{k}, %v{k}, 0x2c1b3c6d;",
        f"shr.u32 %v{k}, %v{k}, 12;",
        f"ld.param.u32 %n{k}, [A+{settings.at('delay')}];",
        f"and.b32 %v{k}, %v{k}, %n{k};",
        *spin(f"LATE{k}", k),
    ]


def spin(label: str, k: int) -> list[str]:
    """Lets as many cycles pass as ``%v`` says."""
    return [
        f"mov.u32 %m{k}, %clock;",
        f"{label}:",
        f"mov.u32 %n{k}, %clock;",
        f"sub.u32 %n{k}, %n{k}, %m{k};",
        f"setp.lt.u32 %p{k}, %n{k}, %v{k};",
        f"@%p{k} bra {label};",
    ]


def pipe(k: int) -> list[str]:
    """Shared loads that are still queued when the test begins: nothing waits for their values."""
    return [
        f"ld.param.u32 %m{k}, [A+{settings.at('pipe')}];",
        f"setp.eq.u32 %p{k}, %m{k}, 0;",
        f"@%p{k} bra QUIET{k};",
        f"mov.u32 %n{k}, S;",
        f"mad.lo.u32 %n{k}, %lane, 128, %n{k};",
        f"PIPE{k}:",
        *(f"ld.volatile.shared.u32 %v{k}, [%n{k}+{settings.PIPE + 4 * n}];" for n in range(4)),
        f"sub.u32 %m{k}, %m{k}, 1;",
        f"setp.ne.u32 %p{k}, %m{k}, 0;",
        f"@%p{k} bra PIPE{k};",
        f"QUIET{k}:",
    ]


def stuck(k: int) -> list[str]:
    """Says that a wait of instance ``%i`` gave up."""
    return [
        f"setp.ne.u32 %p{k}, %stuck{k}, 0;",
        f"ld.param.u64 %w{k}, [A+{settings.at('stuck')}];",
        f"mad.wide.u32 %w{k}, %i{k}, 4, %w{k};",
        f"@%p{k} st.global.u32 [%w{k}], %stuck{k};",
    ]


def result(k: int, slot: int) -> list[str]:
    """The address of a slot of instance ``%i``, in ``%to``."""
    return [
        f"ld.param.u32 %m{k}, [A+{settings.at('mask')}];",
        f"add.u32 %m{k}, %m{k}, 1;",
        f"mad.lo.u32 %m{k}, %m{k}, {slot}, %i{k};",
        f"ld.param.u64 %to{k}, [A+{settings.at('results')}];",
        f"mad.wide.u32 %to{k}, %m{k}, 8, %to{k};",
    ]


def value(k: int, name: str, kind: str) -> list[str]:
    """The contents of a register in the 64 bits of ``%g``."""
    if kind == "pred":
        return [f"selp.u32 %v{k}, 1, 0, {name};", f"cvt.u64.u32 %g{k}, %v{k};"]
    if type_size(kind) == 8:
        return [f"mov.b64 %g{k}, {name};"]
    lines = [f"cvt.u64.u{max(8 * type_size(kind), 16)} %g{k}, {name};"]
    return [*lines, f"and.b64 %g{k}, %g{k}, 255;"] if type_size(kind) == 1 else lines


def declared_noise() -> list[str]:
    """The registers of the noise."""
    return [".reg .u32 %where, %kind, %value, %left, %seen, %hash; .reg .u64 %far;"]


def begin_noise() -> list[str]:
    """What the noise needs to know."""
    return [
        "mov.u32 %where, S;",
        "mad.lo.u32 %where, %lane, 128, %where;",
        f"ld.param.u32 %kind, [A+{settings.at('noise')}];",
        f"ld.param.u64 %far, [A+{settings.at('scratch')}];",
        "mov.u32 %hash, %ctaid.x;",
        "mad.lo.u32 %hash, %hash, 1024, %thr;",
    ]


def noise() -> list[str]:
    """A round of noise: the banks of shared memory, or the memory, are kept busy."""
    busy = [
        line
        for n in range(4)
        for line in (
            f"ld.volatile.shared.u32 %value, [%where+{settings.PIPE + 8 * n}];",
            f"st.volatile.shared.u32 [%where+{settings.PIPE + 8 * n + 64}], %value;",
        )
    ]
    return [
        "and.b32 %n, %kind, 1;",
        "setp.eq.u32 %go, %n, 0;",
        "@%go bra CALM;",
        *busy,
        "CALM:",
        "and.b32 %n, %kind, 2;",
        "setp.eq.u32 %go, %n, 0;",
        "@%go bra STILL;",
        "mad.lo.u32 %hash, %hash, 1664525, 1013904223;",
        "shr.u32 %n, %hash, 10;",
        "and.b32 %n, %n, 0xfffff;",
        "mad.wide.u32 %wide, %n, 4, %far;",
        "ld.volatile.global.u32 %value, [%wide];",
        "st.volatile.global.u32 [%wide], %hash;",
        "STILL:",
    ]
