"""Random kernels whose addresses are forms in the coordinates, and the accesses of every thread of the grid.

    python -m tests.fuzz.affine_grids --programs 500 --seed 1

A kernel has a few accesses of global memory, in loops and under guards, at addresses that are sums of products,
quotients and remainders of ``%ctaid``, ``%tid`` and the loop counter. Most follow a layout that keeps the CTAs apart
(lines, tiles, tiles in groups, columns, rows of blocks), and some of these are damaged. The judge evaluates the same
forms in Python for each thread of each CTA, byte by byte, and looks for two threads of which one writes what another
accesses: it reads no PTX, knows no classes of CTAs and no forms. There is no synchronisation but a barrier of the CTA
between phases. Threads store their numbers; what lanes of one warp store to one place by one instruction counts as one
store, as it does for modules (docs/ptx-modules.md).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, count, product
from random import Random
from typing import Any

from mcheck.base.verdicts import Verdict
from mcheck.checking.check.modules import check_text
from mcheck.checking.run.case import Options, Settings
from mcheck.checking.run.result import Result
from mcheck.frontend.ptx import launch_reader

Point = Mapping[str, int]
"""The values of ``bx``, ``by``, ``t`` and ``k`` (the loop counter)."""

SECONDS = 20.0


# --- forms ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Form:
    """A number that depends on the coordinates: a name, a constant, or an operation on two forms."""

    operation: str
    left: Form | str | int = 0
    right: Form | int = 0

    def at(self, point: Point) -> int:
        """Its value."""
        if self.operation == "name":
            assert isinstance(self.left, str)
            return point[self.left]
        if self.operation == "constant":
            assert isinstance(self.left, int)
            return self.left
        assert isinstance(self.left, Form)
        a = self.left.at(point)
        b = self.right.at(point) if isinstance(self.right, Form) else self.right
        return OPERATIONS[self.operation][0](a, b)


OPERATIONS: Mapping[str, tuple[Callable[[int, int], int], str]] = {
    "+": (lambda a, b: a + b, "add.u32"),
    "-": (lambda a, b: a - b, "sub.u32"),
    "*": (lambda a, b: a * b, "mul.lo.u32"),
    "/": (lambda a, b: a // b, "div.u32"),
    "%": (lambda a, b: a % b, "rem.u32"),
    "^": (lambda a, b: a ^ b, "xor.b32"),
    "min": (min, "min.u32"),
}
BX, BY, T, K = (Form("name", name) for name in ("bx", "by", "t", "k"))


def constant(value: int) -> Form:
    """A number."""
    return Form("constant", value)


def plus(*forms: Form) -> Form:
    """The sum."""
    made = forms[0]
    for form in forms[1:]:
        made = Form("+", made, form)
    return made


def times(form: Form, factor: int) -> Form:
    """The product."""
    return Form("*", form, factor)


# --- kernels ----------------------------------------------------------------------------------------------------------

KINDS = ("ld", "st", "red", "bulk")


@dataclass(frozen=True, slots=True)
class Access:
    """An access of ``size`` bytes of a buffer at ``size`` times ``index``.

    It is executed where each guard (form, bound) is below its bound, ``loop`` times; a bulk copy by thread 0 alone.
    """

    kind: str
    buffer: str
    index: Form
    size: int
    guards: tuple[tuple[Form, int], ...] = ()
    loop: int = 1


@dataclass(frozen=True, slots=True)
class Kernel:
    """The accesses, phase by phase, with the extents of the launch."""

    phases: tuple[tuple[Access, ...], ...]
    grid: tuple[int, int]
    block: int

    @property
    def accesses(self) -> Iterator[Access]:
        """All accesses."""
        return (access for phase in self.phases for access in phase)


@dataclass(frozen=True, slots=True)
class Touch:
    """An access of some bytes by a thread; ``statement`` is the instruction with the round of its loop."""

    thread: tuple[int, int, int]
    phase: int
    kind: str
    statement: tuple[int, int]
    first: int

    @property
    def warp(self) -> tuple[int, int, int]:
        """The warp of the thread, by the CTA and its number."""
        return (*self.thread[:2], self.thread[2] // 32)

    def conflicts(self, other: Touch) -> bool:
        """Whether the two conflict in a byte that both touch, and no barrier orders them.

        Two reductions do not conflict (both are morally strong); copies of one thread are waited for at once.
        """
        if self.thread == other.thread or (self.kind == other.kind and self.kind in ("ld", "red")):
            return False
        if (self.statement, self.first, self.warp) == (other.statement, other.first, other.warp):
            return False
        return self.thread[:2] != other.thread[:2] or self.phase == other.phase


def touches(kernel: Kernel) -> Iterator[tuple[str, int, Touch]]:
    """(buffer, size, access) for each access of the whole grid."""
    for by, bx, t in product(range(kernel.grid[1]), range(kernel.grid[0]), range(kernel.block)):
        for phase, accesses in enumerate(kernel.phases):
            for number, access in enumerate(accesses):
                if access.kind == "bulk" and t:
                    continue
                for k in range(access.loop):
                    point = {"bx": bx, "by": by, "t": t, "k": k}
                    if all(form.at(point) < bound for form, bound in access.guards):
                        first = access.index.at(point) * access.size
                        yield access.buffer, access.size, Touch((bx, by, t), phase, access.kind, (number, k), first)


def has_race(kernel: Kernel) -> bool:
    """Whether two threads touch a byte that one of them writes, and nothing orders them."""
    seen: dict[tuple[str, int], list[Touch]] = defaultdict(list)
    for buffer, size, touch in touches(kernel):
        for byte in range(touch.first, touch.first + size):
            seen[buffer, byte].append(touch)
    return any(a.conflicts(b) for together in seen.values() for a, b in combinations(together, 2))


def extent(kernel: Kernel, buffer: str) -> int:
    """Bytes of a buffer that holds all that is accessed."""
    return max((touch.first + size for name, size, touch in touches(kernel) if name == buffer), default=16)


# --- as a module ------------------------------------------------------------------------------------------------------


def write_module(kernel: Kernel) -> str:
    """The kernel in PTX."""
    fresh = count(4)
    predicates = count()
    labels = count()
    body: list[str] = []

    def evaluate(form: Form) -> str:
        if form.operation == "name":
            return {"bx": "%r0", "by": "%r1", "t": "%r2", "k": "%r3"}[str(form.left)]
        if form.operation == "constant":
            return str(form.left)
        assert isinstance(form.left, Form)
        left = evaluate(form.left)
        right = evaluate(form.right) if isinstance(form.right, Form) else str(form.right)
        register = f"%r{next(fresh)}"
        if left.isdigit():
            body.append(f"mov.u32 {register}, {left};")
            left = register
        body.append(f"{OPERATIONS[form.operation][1]} {register}, {left}, {right};")
        return register

    for number, phase in enumerate(kernel.phases):
        if number:
            body.append("bar.sync 0;")
        for access in phase:
            end = f"END{next(labels)}"
            body.append("mov.u32 %r3, 0;")
            if access.loop > 1:
                body.append(f"LOOP{end}:")
            guards = (*access.guards, (T, 1)) if access.kind == "bulk" else access.guards
            for form, bound in guards:
                predicate = f"%p{next(predicates)}"
                body += [f"setp.ge.u32 {predicate}, {evaluate(form)}, {bound};", f"@{predicate} bra {end};"]
            offset = evaluate(times(access.index, access.size))
            body += [f"cvt.u64.u32 %o, {offset};", f"add.u64 %o, %o, %{access.buffer};", *_instructions(access)]
            body.append(f"{end}:")
            if access.loop > 1:
                predicate = f"%p{next(predicates)}"
                body += ["add.u32 %r3, %r3, 1;", f"setp.lt.u32 {predicate}, %r3, {access.loop};"]
                body.append(f"@{predicate} bra LOOP{end};")
    lines = [".version 8.7", ".target sm_90", ".address_size 64"]
    lines += [".visible .entry k(.param .u64 x, .param .u64 y)", "{"]
    lines += [f".reg .pred %p<{next(predicates) + 1}>;", f".reg .b32 %r<{next(fresh) + 1}>, %v<4>, %l<4>;"]
    lines += [".reg .b64 %x, %y, %o, %s;", ".shared .align 128 .b8 buf[256];"]
    lines += ["ld.param.u64 %x, [x];", "ld.param.u64 %y, [y];"]
    lines += ["mov.u32 %r0, %ctaid.x;", "mov.u32 %r1, %ctaid.y;", "mov.u32 %r2, %tid.x;", "mov.u64 %s, buf;"]
    lines += [f"mad.lo.u32 %v0, %r1, {kernel.grid[0]}, %r0;", f"mad.lo.u32 %v0, %v0, {kernel.block}, %r2;"]
    lines += [f"mov.u32 %v{k}, %v0;" for k in range(1, 4)]
    return "\n".join([*lines, *body, "ret;", "}", ""])


def _instructions(access: Access) -> list[str]:
    if access.kind == "red":
        return ["red.relaxed.gpu.global.add.u32 [%o], 1;"]
    if access.kind == "bulk":
        copy = f"cp.async.bulk.global.shared::cta.bulk_group [%o], [%s], {access.size};"
        return [copy, "cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 0;"]
    registers = [f"%{'l' if access.kind == 'ld' else 'v'}{k}" for k in range(max(1, access.size // 4))]
    value = registers[0] if len(registers) == 1 else "{" + ", ".join(registers) + "}"
    vector = f".v{len(registers)}" if len(registers) > 1 else ""
    kind = f"{vector}.{'u32' if access.size >= 4 else f'u{8 * access.size}'}"
    return [f"ld.global{kind} {value}, [%o];"] if access.kind == "ld" else [f"st.global{kind} [%o], {value};"]


# --- the generator ----------------------------------------------------------------------------------------------------


def generate(random: Random) -> Kernel:
    """A random kernel."""
    grid = random.choice(((2, 1), (3, 1), (8, 1), (64, 1), (2, 2), (4, 3), (5, 7), (8, 8), (1, 6), (21, 3)))
    block = random.choice((32, 32, 64))
    phases = [[_planned(random, grid, block, random.choice("xxy"))]]
    if random.random() < 0.6:
        more = _planned(random, grid, block, random.choice("xyy"))
        if random.random() < 0.5:
            phases.append([more])
        else:
            phases[0].append(more)
    if random.random() < 0.3:
        phases[-1].append(Access(random.choice(("ld", "st", "red")), random.choice("xy"), _unplanned(random), 4))
    return Kernel(tuple(map(tuple, phases)), grid, block)


def _planned(random: Random, grid: tuple[int, int], block: int, buffer: str) -> Access:
    """An access whose layout keeps the threads apart, or would but for a damage."""
    kind = random.choices(KINDS, (3, 6, 2, 2))[0]
    size = {"red": 4, "bulk": random.choice((16, 32, 128))}.get(kind, random.choice((1, 2, 4, 4, 8, 16)))
    wide, high = grid
    off = random.choice((0, 0, 0, -1, 1)) if random.random() < 0.5 else 0
    turned = random.random() < 0.2
    cta = plus(times(BX, max(1, high + off)), BY) if turned else plus(times(BY, max(1, wide + off)), BX)
    linear = cta if kind == "bulk" else plus(times(cta, max(1, block + random.choice((0, 0, 0, 0, -1, 2)))), T)
    total = wide * high * (1 if kind == "bulk" else block)
    layout = random.choice(
        ("line", "line", "stride", "tile", "column", "blocked", "reversed", "swizzled", "strided", "grouped")
    )
    loop = random.choice((1, 2, 3))
    guards: list[tuple[Form, int]] = []
    if layout == "stride":
        index = plus(times(K, total + off), linear)
    elif layout == "blocked":
        index = plus(times(linear, loop), K)
    elif layout == "tile" and kind != "bulk":
        width = random.choice((4, 8, 16))
        column = plus(times(BX, width), Form("%", T, width))
        row = plus(times(BY, block // width), Form("/", T, width))
        columns = width * wide - random.choice((0, 0, 1, 3))
        index = plus(times(row, max(1, columns + off)), column)
        guards.append((column, columns + random.choice((0, 0, 0, 1))))
        loop = 1
    elif layout == "column":
        index = plus(times(T, wide * high + off), cta) if kind != "bulk" else cta
        loop = 1
    elif layout == "strided" and kind != "bulk":
        index, loop = _strided(random, cta, block), 1
    elif layout == "grouped":
        index, loop = _grouped(random, cta, (wide + 1) * (high + 1), 1 if kind == "bulk" else block), 1
    elif layout == "swizzled":
        index = Form("^", linear, random.choice((1, 2, 3, 4)))
        loop = 1
    elif layout == "reversed":
        index, loop = plus(times(constant(1), 3), Form("min", linear, total - random.choice((1, 1, 2)))), 1
    else:
        index, loop = linear, 1
    if random.random() < 0.3:
        guards.append((linear, max(1, total - random.choice((0, 1, block // 2)))))
    if random.random() < 0.15:
        guards.append((random.choice((BX, BY, T)), random.choice((1, 1, 2))))
    if random.random() < 0.15:
        index = plus(index, constant(random.choice((1, 3, 64))))
    return Access(kind, buffer, index, size, tuple(guards), loop)


def _strided(random: Random, cta: Form, block: int) -> Form:
    """Places of threads, or of warps, whose distance depends on the CTA; in some it may be 0."""
    modulus = random.randint(2, 5)
    distance = Form("%", plus(BX, constant(random.randrange(modulus))), modulus)
    if random.random() < 0.6:
        distance = plus(distance, constant(1))
    if random.random() < 0.5:
        return plus(times(cta, 6 * block), Form("*", T, distance))
    warp = Form("*", Form("/", T, 32), times(distance, random.choice((16, 32))))
    return plus(times(cta, 6 * block), Form("%", T, 32), warp)


def _grouped(random: Random, cta: Form, total: int, size: int) -> Form:
    """Lines of ``size`` in tiles that follow each other in groups of rows; those behind the last row may be the first
    ones again.
    """
    height, columns = random.randint(1, 4), random.randint(1, 4)
    rows = -(-total // columns)
    first = times(Form("/", cta, height * columns), height)
    rest = Form("%", cta, height * columns)
    here = Form("min", Form("-", constant(rows), first), height)
    row, column = plus(first, Form("%", rest, here)), Form("/", rest, here)
    if random.random() < 0.5:
        wraps = rows * size - random.choice((0, 0, 1, size // 2))
        line = plus(times(row, size), T if size > 1 else constant(0))
        return plus(times(Form("%", line, max(1, wraps)), columns), column)
    return plus(times(plus(times(row, columns), column), size), T if size > 1 else constant(0))


def _unplanned(random: Random) -> Form:
    made: Form = constant(random.randint(0, 5))
    for name in random.sample((BX, BY, T), random.randint(1, 3)):
        part: Form = name
        if random.random() < 0.3:
            part = Form(random.choice("/%"), part, random.randint(1, 5))
        made = plus(made, times(part, random.choice((0, 1, 2, 3, 7, 32, 64, 257))))
    return made


# --- the comparison ---------------------------------------------------------------------------------------------------


def launch_of(kernel: Kernel) -> dict[str, Any]:
    """The launch of the module, with buffers that hold all that is accessed."""
    buffers = {name: {"buffer": -(-extent(kernel, name) // 16) * 16} for name in "xy"}
    return {"grid": list(kernel.grid), "block": kernel.block, "params": buffers}


def check(kernel: Kernel) -> Result:
    """What mcheck says."""
    launch = launch_reader.from_object(launch_of(kernel))
    return check_text(write_module(kernel), "kernel.ptx", launch, Settings(timeout=SECONDS), Options())


def compare(kernel: Kernel) -> tuple[str, Result]:
    """What came of a kernel, in a few words; a contradiction is named so."""
    result = check(kernel)
    race = has_race(kernel)
    said = {finding.kind for finding in result.findings if finding.severity == "error"}
    if result.verdict == Verdict.PROVED:
        return ("contradiction: a race is missed" if race else "apart, proved"), result
    if result.verdict == Verdict.FINDING:
        if "race" not in said:
            return f"another finding: {sorted({f.code for f in result.findings})}", result
        return ("a race, found" if race else "contradiction: a race that is none"), result
    return f"left open ({'a race' if race else 'apart'}): {result.verdict}", result


def main() -> int:
    """Compares random kernels; exit status 1 after a contradiction."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for number in range(options.programs):
        kernel = generate(Random(f"{options.seed}/{number}"))
        outcome, result = compare(kernel)
        counts[outcome] += 1
        if not outcome.startswith(("apart", "a race")):
            print(f"// {number}: {outcome}\n// {launch_of(kernel)}\n// {result.reason or ''}\n{write_module(kernel)}")
    for outcome, times_seen in sorted(counts.items()):
        print(f"{times_seen:6} {outcome}")
    return 1 if any(outcome.startswith("contradiction") for outcome in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
