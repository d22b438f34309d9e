"""Random grids whose threads take locks in loops, and their answers as modules and as litmus tests.

    python -m tests.fuzz.spin_locks --programs 100 --seed 1

A module repeats a swap until its value compares with a known one, whatever that says of a lock: values, scopes,
semantics, releases, and who accesses the word besides are right mostly, and wrong now and then. The litmus test has a
few attempts one after the other, and waits for ever when all have failed. Each of its executions is one of the module,
so a race in it must not be missed. That there is none says nothing, nor does a deadlock.
"""

from __future__ import annotations

import re
import sys
from random import Random

from mcheck.base.verdicts import Verdict
from tests.fuzz.differential import EngineAnswer
from tests.fuzz.grids import Grid, Lines, check_module, judge_threads, make_grid
from tests.fuzz.judged_answers import seed_parser, tell_outcomes

ATTEMPTS = 2
NEVER = "await ld.relaxed.gpu.global.u32 r3, [z] == 77;"
BARRIER = "barrier.sync 0;"
SPIN = re.compile(r"spin (.*;) (r\d) (==|!=) (\d+)")
OTHERWISE = {"==": "!=", "!=": "=="}


def in_module(lines: Lines, name: str) -> Lines:
    """The lines with each lock taken in a loop, whose labels have a name of their own."""
    out: list[str] = []
    for number, text in enumerate(lines):
        if spin := SPIN.fullmatch(text):
            swap, register, test, value = spin.groups()
            again = "ne" if test == "==" else "eq"
            out += [f"S{name}_{number}:", swap, f"setp.{again}.u32 %p1, {register}, {value};"]
            out.append(f"@%p1 bra S{name}_{number};")
        else:
            out.append(text)
    return tuple(out)


def in_attempts(lines: Lines) -> Lines:
    """The lines with a few attempts at each lock."""
    out: list[str] = []
    for text in lines:
        if spin := SPIN.fullmatch(text):
            swap, register, test, value = spin.groups()
            fails = f"if ({register} {OTHERWISE[test]} {value}) {{"
            out += [swap, *((fails, swap, "}") * (ATTEMPTS - 1)), fails, NEVER, "}"]
        else:
            out.append(text)
    return tuple(out)


# --- the generator ----------------------------------------------------------------------------------------------------


def generate(random: Random) -> tuple[list[Lines], int]:
    """What the threads do, and how many are in a CTA."""
    width = random.choices((1, 2), (4, 1))[0]
    threads = 4 if width == 2 else random.choices((2, 3), (2, 1))[0]
    body = _thread(random)
    bodies = [body if random.random() < 0.6 else _thread(random) for _ in range(threads)]
    if width == 2 and random.random() < 0.7:  # one thread takes the lock, the other one works
        bodies = [(_take(random, "x", 0), BARRIER, BARRIER, *_free(random, "x")), (BARRIER, *_use(random), BARRIER)] * 2
        if random.random() < 0.5:
            k = random.randrange(4)
            at = max(j for j, text in enumerate(bodies[k]) if text == BARRIER)
            bodies[k] = (*bodies[k][:at], *_use(random), *bodies[k][at:])
    return bodies, width


def _thread(random: Random) -> Lines:
    what = random.random()
    if what < 0.75:
        lines = [_take(random, "x", 0), *_use(random), *_free(random, "x")]
        return (*lines, *(_use(random) if random.random() < 0.2 else ()))
    if what < 0.82:
        return ("ld.acquire.gpu.global.u32 r0, [x];", f"if (r0 == {random.randint(0, 2)}) {{", *_use(random), "}")
    if what < 0.88:
        return (*_use(random), *_free(random, "x"))
    if what < 0.94:
        return ("atom.acquire.gpu.global.exch.b32 r0, [x], 1;", "if (r0 == 0) {", *_use(random), "}")
    return (_take(random, "x", 0), _take(random, "y", 1), *_use(random), *_free(random, "y"), *_free(random, "x"))


def _take(random: Random, word: str, register: int) -> str:
    sem = random.choices(("acquire", "acq_rel", "relaxed"), (6, 1, 1))[0]
    free, taken = random.choices(((0, 1), (0, 2), (1, 0)), (8, 1, 1))[0]
    op, given = random.choice((("exch", f"{taken}"), ("cas", f"{free}, {taken}")))
    test = random.choice((f"== {free}", f"!= {taken}"))
    return f"spin atom.{sem}.{_scope(random)}.global.{op}.b32 r{register}, [{word}], {given}; r{register} {test}"


def _free(random: Random, word: str) -> Lines:
    scope, value = _scope(random), random.choices((0, 1, 2), (12, 1, 1))[0]
    ways: tuple[Lines, ...] = (
        (f"st.release.{scope}.global.u32 [{word}], {value};",),
        (f"fence.acq_rel.{scope};", f"st.relaxed.{scope}.global.u32 [{word}], {value};"),
        (f"atom.release.{scope}.global.exch.b32 r6, [{word}], {value};",),
        (f"st.relaxed.{scope}.global.u32 [{word}], {value};",),
        (f"red.release.{scope}.global.add.u32 [{word}], 4294967295;",),
        (f"atom.release.{scope}.global.cas.b32 r6, [{word}], 1, 0;",),
        (f"st.global.u32 [{word}], {value};",),
        (),
    )
    return random.choices(ways, (8, 2, 2, 1, 0.5, 0.5, 0.5, 0.5))[0]


def _use(random: Random) -> Lines:
    ways: tuple[Lines, ...] = (
        ("st.global.u32 [d], 1;",),
        ("ld.global.u32 r7, [d];", "st.global.u32 [d], 2;"),
        ("ld.global.u32 r7, [d];",),
        ("ld.global.u32 r5, [e];", "if (r5 == 0) {", "st.global.u32 [d], 1;", "}", "st.global.u32 [e], 1;"),
    )
    return random.choice(ways)


def _scope(random: Random) -> str:
    return random.choices(("gpu", "cta", "sys"), (12, 1, 1))[0]


# --- the comparison ---------------------------------------------------------------------------------------------------


def grids(bodies: list[Lines], width: int) -> tuple[Grid, Grid]:
    """The program with loops, and with attempts."""
    loops = [in_module(lines, str(k)) for k, lines in enumerate(bodies)]
    attempts = [in_attempts(lines) for lines in bodies]
    return make_grid(loops, width, cooperative=True), make_grid(attempts, width, cooperative=True)


def compare(seed: int, seconds: float) -> tuple[str, Grid, EngineAnswer | None]:
    """What came of a program, in a word or two, and what it was."""
    loops, attempts = grids(*generate(Random(seed)))
    found = check_module(loops, seconds)
    if found.verdict != Verdict.PROVED:
        return str(found.verdict), attempts, None
    judge = judge_threads(attempts.draft)
    if judge.kinds is None:
        return "proved, the judge left it open", attempts, judge
    return "missed" if judge.kinds - {"deadlock"} else "proved", attempts, judge


def main() -> int:
    chosen = seed_parser("looks for races of random locks that a proof missed", programs=100, seconds=2.0).parse_args()

    def one(seed: int) -> tuple[str, str]:
        outcome, grid, judge = compare(seed, chosen.seconds)
        if outcome not in ("missed", "error"):
            return outcome, ""
        said = sorted(judge.codes or ()) if judge is not None else ""
        return outcome, f"{outcome} {said}\n{grid.draft.text()}width {grid.width}"

    return tell_outcomes(chosen, one, ("missed", "error"))


if __name__ == "__main__":
    sys.exit(main())
