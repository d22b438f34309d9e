"""The two kernels that every test shares: the histogram of the final states, and the initial contents.

``tally`` reads the terms of every instance, mixes them into a key, and counts it in an open table whose entries hold
key, count and values. A thread keeps the count of the state that it saw last, so that the common states cost no
atomics.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

MOST_TERMS = 16
ENTRIES = 4096
ENTRY = 8 * (2 + MOST_TERMS)
HEAD = 48
TERM = 32
PARAMETERS = HEAD + TERM * MOST_TERMS


class Place(NamedTuple):
    """Where a term of instance i lies: ``base`` + (i * ``multiplier`` & mask) * ``stride``, ``size`` bytes."""

    base: int
    multiplier: int
    stride: int
    size: int


def parameters(instances: int, stuck: int, table: int, places: Sequence[Place]) -> bytes:
    """The parameter of ``tally``; the word after the table counts stuck instances, the next states without a place."""
    head = struct.pack("<QQQQQQ", instances, instances - 1, stuck, table, len(places), table + ENTRIES * ENTRY)
    return (head + b"".join(struct.pack("<QQQQ", *p) for p in places)).ljust(PARAMETERS, b"\0")


TABLE_BYTES = ENTRIES * ENTRY + 16


def read(table: bytes, terms: int) -> tuple[dict[tuple[int, ...], int], int, int]:
    """The histogram, the number of stuck instances, and how many had no place in the table."""
    found: dict[tuple[int, ...], int] = {}
    for at in range(0, ENTRIES * ENTRY, ENTRY):
        key, count = struct.unpack_from("<QQ", table, at)
        if key:
            values = struct.unpack_from(f"<{terms}Q", table, at + 16)
            found[values] = found.get(values, 0) + count
    stuck, lost = struct.unpack_from("<QQ", table, ENTRIES * ENTRY)
    return found, stuck, lost


def _load(out: str, address: str) -> Iterable[str]:
    for size, code in ((1, "u8"), (2, "u16"), (4, "u32"), (8, "u64")):
        yield f"setp.eq.u32 %is, %size, {size};"
        yield f"@%is ld.global.{code} {out}, [{address}];"


def _term(out: str) -> list[str]:
    """Loads term number ``%t`` of instance ``%j``; the terms of the parameter are indexed at run time."""
    return [
        f"mad.lo.u32 %at, %t, {TERM}, {HEAD};",
        "cvt.u64.u32 %where, %at;",
        "add.u64 %where, %params, %where;",
        "ld.param.u64 %base, [%where];",
        "ld.param.u32 %m, [%where+8];",
        "ld.param.u32 %stride, [%where+16];",
        "ld.param.u32 %size, [%where+24];",
        "mul.lo.u32 %m, %m, %j;",
        "and.b32 %m, %m, %mask;",
        "mad.wide.u32 %base, %m, %stride, %base;",
        *_load(out, "%base"),
    ]


def module() -> str:
    """The text of the module."""
    lines = [
        ".version 9.0", ".target sm_90a", ".address_size 64",
        f".visible .entry tally(.param .align 8 .b8 A[{PARAMETERS}])", "{",
        ".reg .u32 %i, %j, %n, %mask, %t, %terms, %m, %stride, %size, %at, %step, %x, %word, %slot, %tries;",
        ".reg .u64 %params, %where, %base, %v, %key, %last, %count, %stuck, %table, %entry, %old, %s, %rest, %to;",
        ".reg .u32 %lasti, %ret;", ".reg .pred %p, %is, %end;",
        "mov.b64 %params, A;",
        "ld.param.u32 %n, [A];", "ld.param.u32 %mask, [A+8];", "ld.param.u64 %stuck, [A+16];",
        "ld.param.u64 %table, [A+24];", "ld.param.u32 %terms, [A+32];", "ld.param.u64 %rest, [A+40];",
        "mov.u32 %x, %ctaid.x;", "mov.u32 %t, %ntid.x;", "mov.u32 %i, %tid.x;", "mad.lo.u32 %i, %x, %t, %i;",
        "mov.u32 %x, %nctaid.x;", "mul.lo.u32 %step, %x, %t;",
        "mov.u64 %last, 0;", "mov.u64 %count, 0;", "mov.u32 %lasti, 0;",
        "NEXT:", "setp.ge.u32 %end, %i, %n;", "@%end bra FLUSH;",
        "mad.wide.u32 %s, %i, 4, %stuck;", "ld.global.u32 %word, [%s];", "setp.eq.u32 %p, %word, 0;", "@%p bra SOUND;",
        "st.global.u32 [%s], 0;", "red.global.add.u64 [%rest], 1;", "add.u32 %i, %i, %step;", "bra NEXT;",
        "SOUND:", "mov.u64 %key, 0x9e3779b97f4a7c15;", "mov.u32 %t, 0;", "mov.u32 %j, %i;",
        "KEY:", *_term("%v"),
        "xor.b64 %key, %key, %v;", "mul.lo.u64 %key, %key, 0xbf58476d1ce4e5b9;", "shr.u64 %v, %key, 29;",
        "xor.b64 %key, %key, %v;", "mul.lo.u64 %key, %key, 0x94d049bb133111eb;", "shr.u64 %v, %key, 32;",
        "xor.b64 %key, %key, %v;", "add.u32 %t, %t, 1;", "setp.lt.u32 %p, %t, %terms;", "@%p bra KEY;",
        "or.b64 %key, %key, 1;",
        "setp.eq.u64 %p, %key, %last;", "@%p add.u64 %count, %count, 1;", "@%p add.u32 %i, %i, %step;", "@%p bra NEXT;",
        # another state: what was counted goes to the table
        "FLUSH:", "setp.eq.u64 %p, %count, 0;", "@%p bra TAKE;",
        "cvt.u32.u64 %slot, %last;", "shr.u32 %slot, %slot, 7;", "mov.u32 %tries, 0;",
        "PROBE:", f"and.b32 %slot, %slot, {ENTRIES - 1};", f"mad.wide.u32 %entry, %slot, {ENTRY}, %table;",
        "atom.global.cas.b64 %old, [%entry], 0, %last;", "setp.eq.u64 %p, %old, %last;", "@%p bra COUNT;",
        "setp.eq.u64 %p, %old, 0;", "@%p bra NEW;",
        "add.u32 %slot, %slot, 1;", "add.u32 %tries, %tries, 1;", f"setp.lt.u32 %p, %tries, {ENTRIES};",
        "@%p bra PROBE;", "red.global.add.u64 [%rest+8], %count;", "bra TAKE;",
        "NEW:", "mov.u32 %t, 0;", "mov.u32 %j, %lasti;", "add.u64 %to, %entry, 16;",
        "VALUES:", *_term("%v"), "st.global.u64 [%to], %v;", "add.u64 %to, %to, 8;", "add.u32 %t, %t, 1;",
        "setp.lt.u32 %p, %t, %terms;", "@%p bra VALUES;",
        "COUNT:", "red.global.add.u64 [%entry+8], %count;",
        "TAKE:", "@%end exit;", "mov.u64 %last, %key;", "mov.u32 %lasti, %i;", "mov.u64 %count, 1;",
        "add.u32 %i, %i, %step;", "bra NEXT;",
        "}",
        # words of %n instances of %words words from an image
        ".visible .entry fill(.param .u64 base, .param .u64 image, .param .u64 words, .param .u64 total)", "{",
        ".reg .u64 %b, %g, %w, %n, %i, %step, %k, %a; .reg .u32 %x, %y, %v; .reg .pred %p;",
        "ld.param.u64 %b, [base];", "ld.param.u64 %g, [image];", "ld.param.u64 %w, [words];",
        "ld.param.u64 %n, [total];",
        "mov.u32 %x, %ctaid.x;", "mov.u32 %y, %ntid.x;", "mul.wide.u32 %i, %x, %y;", "mov.u32 %x, %tid.x;",
        "cvt.u64.u32 %a, %x;", "add.u64 %i, %i, %a;", "mov.u32 %x, %nctaid.x;", "mul.wide.u32 %step, %x, %y;",
        "AGAIN:", "setp.ge.u64 %p, %i, %n;", "@%p exit;", "rem.u64 %k, %i, %w;", "mad.lo.u64 %a, %k, 4, %g;",
        "ld.global.u32 %v, [%a];", "mad.lo.u64 %a, %i, 4, %b;", "st.global.u32 [%a], %v;", "add.u64 %i, %i, %step;",
        "bra AGAIN;",
        "}", "",
    ]  # fmt: skip
    return "\n".join(lines)
