"""Random grids whose threads wait in loops around several loads, and their answers as modules and as litmus tests.

    python -m tests.fuzz.load_loops --programs 100 --seed 1

A thread repeats two or three loads until tests of their values let it go on: as in Peterson's lock, where one of two is
enough, as in a barrier of three, where all have to hold, or with a second load that depends on the first. What others
store, with which semantics and scopes, is right mostly. The explicit engine lists the executions of the same loops in
a litmus test, deadlocks included.
"""

from __future__ import annotations

import sys
from random import Random
from typing import TypeVar

from tests.fuzz.grids import Grid, Lines, compare, make_grid, report
from tests.fuzz.judged_answers import seed_parser, tell_outcomes

WAIT_WORDS = ("x", "y", "z")
TESTS = ("eq", "ne", "lt", "ge")
OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt"}


def generate(random: Random) -> Grid:
    """A random program, whose threads have a CTA each."""
    plan = random.random()
    if plan < 0.35:
        bodies = [_peterson(random, me) for me in range(2)]
    elif plan < 0.75:
        bodies = [_announcer(random, me) for me in range(3)]
    else:
        bodies = [_thread(random, str(k)) for k in range(random.choice((2, 2, 3)))]
    return make_grid(bodies, 1, cooperative=random.random() < 0.6)


def _peterson(random: Random, me: int) -> Lines:
    mine, other = ("x", "y") if me == 0 else ("y", "x")
    turn, sem = 1 - me, _pick(random, "acq_rel", "relaxed", "acquire")
    announce = f"st.{_pick(random, 'relaxed', 'release')}.{_scope(random)}.global.u32 [{mine}], 1;"
    exchange = f"atom.{sem}.{_scope(random)}.global.exch.b32 r7, [z], {_pick(random, turn, me)};"
    first = announce, exchange
    loop = _either(random, f"P{me}", (other, "eq", 1), ("z", "eq", turn))
    leave = f"st.{_pick(random, 'release', 'relaxed')}.{_scope(random)}.global.u32 [{mine}], {_pick(random, 0, 1)};"
    use = _use(random)
    leaves: Lines = (leave,) if random.random() < 0.93 else ()
    return (*(first if random.random() < 0.93 else first[::-1]), *loop, *use, *leaves)


def _announcer(random: Random, me: int) -> Lines:
    """Two announce, and the third one waits for both; or one of two is enough."""
    if me < 2:
        stored = _pick(random, 1, 2)
        return (
            *_use(random),
            f"st.{_pick(random, 'release', 'relaxed')}.{_scope(random)}.global.u32 [{'xy'[me]}], {stored};",
        )
    tests = ("x", _pick(random, "ne", "lt"), 1), ("y", _pick(random, "ne", "lt"), 1)
    loop = _both(random, "A", *tests) if random.random() < 0.7 else _either(random, "A", *tests)
    return (*loop, *_use(random))


def _thread(random: Random, name: str) -> Lines:
    """Some stores, a loop, and more stores."""
    out: list[str] = []
    for part in range(random.choice((1, 1, 2))):
        out += _stores(random)
        tests = [(random.choice(WAIT_WORDS), random.choice(TESTS), random.choice((0, 1, 1, 2))) for _ in range(3)]
        kind, label = random.random(), f"T{name}{part}"
        if kind < 0.3:
            out += _either(random, label, *tests[:2])
        elif kind < 0.6:
            out += _both(random, label, *tests[:2])
        elif kind < 0.8:
            out += _either_of_two(random, label, *tests)
        else:
            out += _both(random, label, *tests)
        out += _use(random) if random.random() < 0.6 else ()
    return (*out, *_stores(random))


def _stores(random: Random) -> Lines:
    out: list[str] = []
    for _ in range(random.choice((0, 1, 1, 2))):
        word, value = random.choice(WAIT_WORDS), random.choice((0, 1, 1, 2))
        if random.random() < 0.2:
            out.append(f"atom.{_pick(random, 'acq_rel', 'relaxed')}.gpu.global.exch.b32 r7, [{word}], {value};")
        else:
            out.append(f"st.{_pick(random, 'release', 'relaxed')}.{_scope(random)}.global.u32 [{word}], {value};")
    return tuple(out)


T = TypeVar("T", str, int)
Test = tuple[str, str, int]
"""A word, and the comparison of its value that repeats the loop."""


def _load(random: Random, word: str, register: int) -> str:
    return f"ld.{_pick(random, 'acquire', 'relaxed')}.{_scope(random)}.global.u32 r{register}, [{word}];"


def _either(random: Random, name: str, one: Test, other: Test) -> Lines:
    """``while (one && other) {}``"""
    return (
        f"S{name}:", _load(random, one[0], 1), f"setp.{OPPOSITE[one[1]]}.u32 %p1, r1, {one[2]};", f"@%p1 bra E{name};",
        _load(random, other[0], 2), f"setp.{other[1]}.u32 %p1, r2, {other[2]};", f"@%p1 bra S{name};", f"E{name}:",
    )  # fmt: skip


def _both(random: Random, name: str, *tests: Test) -> Lines:
    """``while (one || other) {}``"""
    out = [f"S{name}:"]
    for k, (word, test, value) in enumerate(tests, 1):
        out += [_load(random, word, k), f"setp.{test}.u32 %p1, r{k}, {value};", f"@%p1 bra S{name};"]
    return tuple(out)


def _either_of_two(random: Random, name: str, one: Test, other: Test, third: Test) -> Lines:
    """``while (one ? other : third) {}``"""
    return (
        f"S{name}:", _load(random, one[0], 1), f"setp.{one[1]}.u32 %p1, r1, {one[2]};", f"@%p1 bra M{name};",
        _load(random, third[0], 3), f"setp.{third[1]}.u32 %p1, r3, {third[2]};", f"@%p1 bra S{name};", f"bra E{name};",
        f"M{name}:",
        _load(random, other[0], 2), f"setp.{other[1]}.u32 %p1, r2, {other[2]};", f"@%p1 bra S{name};", f"E{name}:",
    )  # fmt: skip


def _use(random: Random) -> Lines:
    return random.choice((
        ("ld.global.u32 r5, [d];", "add.u32 r5, r5, 1;", "st.global.u32 [d], r5;"),
        ("st.global.u32 [d], 2;",),
        ("ld.global.u32 r5, [d];",),
    ))  # fmt: skip


def _pick(random: Random, right: T, *wrong: T) -> T:
    """The right one, mostly."""
    return right if random.random() < 0.96 else random.choice(wrong)


def _scope(random: Random) -> str:
    return random.choices(("gpu", "cta", "sys"), (40, 1, 2))[0]


# --- the comparison ---------------------------------------------------------------------------------------------------


def main() -> int:
    about = "compares what is said of random loops around several loads"
    chosen = seed_parser(about, programs=100, seconds=4.0).parse_args()

    def one(seed: int) -> tuple[str, str]:
        found = compare(generate(Random(seed)), chosen.seconds)
        return found.outcome, report(found) if found.what else ""

    return tell_outcomes(chosen, one, ("contradiction",))


if __name__ == "__main__":
    sys.exit(main())
