"""Random threads that draw numbers and compare them, and their answers as modules and as litmus tests.

    python -m tests.fuzz.told_apart --programs 100 --seed 1

Two to four threads, of one CTA or two, add to words, and access the data where comparisons of what they have drawn say
so: who is the last one, who is among the first, whose number is negative. Semantics, scopes and tests are right mostly.
A module is followed once for all numbers that its comparisons do not tell apart. The explicit engine lists the
executions of the litmus test; and with a path for each number, the module has to have the same answer.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from random import Random
from unittest import mock

from mcheck.base.verdicts import Verdict
from mcheck.checking.check.modules import check_text
from mcheck.checking.run.case import Options, Settings
from mcheck.checking.run.result import Result
from mcheck.frontend.ptx import launch_reader
from mcheck.simt.execution.compiler import Compiler
from tests.fuzz.grids import DATA, Comparison, Grid, Lines, contradict, judge_threads, make_grid, report, write_module
from tests.fuzz.judged_answers import seed_parser, tell_outcomes

SECONDS = 4.0
DECIDED = (Verdict.PROVED, Verdict.FINDING)
TESTS = ("eq.u32", "ne.u32", "lt.u32", "ge.u32", "gt.s32", "le.s32", "lt.s32", "eq.s32")
MINUS_ONE = (1 << 32) - 1


# --- the generator ----------------------------------------------------------------------------------------------------


def generate(random: Random) -> Grid:
    """A random program."""
    threads, width = random.choices(((2, 2), (3, 3), (4, 4), (3, 1), (4, 2)), (3, 6, 1, 2, 1))[0]
    family = random.random()
    if family < 0.7:
        bodies = (_last if family < 0.3 else _chosen)(random, threads)
    else:
        bodies = [_thread(random, k) for k in range(threads)]
    return make_grid(bodies, width, cooperative=True)


def _last(random: Random, threads: int) -> list[Lines]:
    """Each thread may write its own, and counts itself; the last one, mostly, reads what the others have written."""
    op, given, last = random.choice((("add", 1, threads - 1), ("add", MINUS_ONE, 1 - threads), ("inc", 7, threads - 1)))
    bodies: list[Lines] = []
    for k in range(threads):
        sem = random.choices(("acq_rel", "release", "acquire", "relaxed"), (9, 1, 1, 1))[0]
        first = (
            ((f"st.global.u32 [{DATA[k]}], 1;",) if k < len(DATA) else ()) if random.random() < 0.9 else _use(random)
        )
        draw = f"atom.{sem}.{_scope(random)}.global.{op}.u32 r0, [x], {given};"
        number = last if random.random() < 0.9 else random.randint(0, threads)
        inner = tuple(f"ld.global.u32 r7, [{word}];" for word in DATA)
        bodies.append((*first, draw, *_where(random, "ne.s32", 0, number, f"K{k}", inner)))
    return bodies


def _chosen(random: Random, threads: int) -> list[Lines]:
    """Each thread draws a number, and the first one or the last one writes the data; or more do, by a mistake."""
    last, given = random.choice(((threads - 1, 1), (1 - threads, MINUS_ONE)))
    if given == 1:
        others = ("ne.s32", last), ("lt.s32", last), ("le.u32", last - 1), ("ne.u32", 0), ("ge.u32", 1), ("gt.s32", 0)
    else:
        others = ("ne.s32", last), ("gt.s32", last), ("ge.s32", last + 1), ("lt.s32", 0), ("le.s32", -1), ("gt.u32", 0)
    test, number = random.choice(others)
    sem = random.choice(("relaxed", "relaxed", "release", "acq_rel"))
    bodies: list[Lines] = []
    for k in range(threads):
        shown = number + (random.choice((-1, 1)) if random.random() < 0.15 else 0)
        draw = f"atom.{sem}.{_scope(random)}.global.add.u32 r0, [x], {given};"
        inner = ("st.global.u32 [d], 1;",) if random.random() < 0.9 else _use(random)
        bodies.append((draw, *_where(random, test, 0, shown, f"K{k}", inner)))
    return bodies


def _thread(random: Random, k: int) -> Lines:
    """One or two draws, with accesses that depend on comparisons of one or both, or on the number itself."""
    out: list[str] = [*_use(random)] if random.random() < 0.3 else []
    for n in range(random.choice((1, 1, 2))):
        op, given = random.choice((("add", 1), ("add", 2), ("add", MINUS_ONE), ("inc", 2), ("max", k), ("exch", k + 1)))
        kind = "b32" if op == "exch" else random.choice(("u32", "s32")) if op in ("add", "max") else "u32"
        sem, word = random.choice(("acq_rel", "acq_rel", "relaxed", "release")), random.choice("xxy")
        out.append(f"atom.{sem}.{_scope(random)}.global.{op}.{kind} r{n}, [{word}], {given};")
        for t in range(random.choice((0, 1, 1, 2))):
            inner = _use(random)
            if random.random() < 0.4:
                inner = _where(
                    random, random.choice(TESTS), random.randint(0, n), _number(random), f"I{k}_{n}{t}", inner
                )
            out += _where(random, random.choice(TESTS), n, _number(random), f"K{k}_{n}{t}", inner)
    if random.random() < 0.1:
        out.append("st.relaxed.gpu.global.u32 [z], r0;")
    return tuple(out)


def _where(random: Random, test: str, register: int, number: int, label: str, inner: Lines) -> Lines:
    """What is done where a comparison does not hold; the number may be in a register."""
    if random.random() < 0.2:
        return (
            f"mov.b32 r6, {number};",
            f"setp.{test} %p1, r{register}, r6;",
            f"@%p1 bra {label};",
            *inner,
            f"{label}:",
        )
    return (f"setp.{test} %p1, r{register}, {number};", f"@%p1 bra {label};", *inner, f"{label}:")


def _number(random: Random) -> int:
    return random.choice((0, 1, 1, 2, 3, -1))


def _use(random: Random) -> Lines:
    ways: tuple[Lines, ...] = (
        ("st.global.u32 [d], 1;",),
        ("ld.global.u32 r7, [d];",),
        ("st.global.u32 [e], 1;",),
        ("ld.relaxed.gpu.global.u32 r7, [y];",),
    )
    return random.choices(ways, (4, 3, 1, 0.3))[0]


def _scope(random: Random) -> str:
    return random.choices(("gpu", "cta", "sys"), (20, 1, 1))[0]


# --- the comparison ---------------------------------------------------------------------------------------------------


def with_own_registers(text: str) -> str:
    """A module of ``grids`` in which each thread has registers of its own, as compilers write them."""
    head, *bodies = re.split(r"(?m)^(?=T\d+:$)", re.sub(r"(?m)^mov\.u32 %r\d, 0;\n", "", text))
    out, declared = [], []
    for body in bodies:
        name = body.partition(":")[0]
        out.append(re.sub(r"%r(\d)", rf"%{name}r\1", body))
        declared.append(f"%{name}r<8>")
    return head.replace("%me;", f"%me, {', '.join(declared)};") + "".join(out)


def check_module(grid: Grid, seconds: float, *, merged: bool = True) -> Result:
    """The answer about the module; if not ``merged``, with a path for each number."""
    launch, text = launch_reader.from_object(grid.launch), with_own_registers(write_module(grid))
    find = Compiler.compared_registers if merged else lambda *_: frozenset()
    with mock.patch.object(Compiler, "compared_registers", find):
        return check_text(text, "<ptx>", launch, Settings(timeout=seconds), Options())


def compare(grid: Grid, seconds: float) -> Comparison:
    """Check a program in both forms, and as a module in two ways."""
    module, judge = check_module(grid, seconds), judge_threads(grid.draft)
    found = Comparison(grid, module, judge, contradict(module, judge))
    if found.what:
        return found
    each = check_module(grid, 2 * seconds, merged=False)
    codes = [{f.code for f in one.findings} for one in (module, each)]
    if each.verdict in DECIDED and (each.verdict != module.verdict or codes[0] != codes[1]):
        return replace(found, what=f"alone {each.verdict} {sorted(codes[1])}")
    return found


def main() -> int:
    about = "compares what is said of random threads that draw numbers"
    chosen = seed_parser(about, programs=100, seconds=SECONDS).parse_args()

    def one(seed: int) -> tuple[str, str]:
        found = compare(generate(Random(seed)), chosen.seconds)
        return found.outcome, report(found) if found.what else ""

    return tell_outcomes(chosen, one, ("contradiction",))


if __name__ == "__main__":
    sys.exit(main())
