"""Random persistent kernels of whose CTAs each warp, or each thread, draws tiles for itself: two answers about each.

    python -m tests.fuzz.team_draws --programs 300 --seed 1 [--tiles 8]

One answer is from a cluster whose threads are given one tile each again and again
(``mcheck.checking.modules.pairs.drawn_grid``). The other one is by following the lines of the plan here, for each way
in which the tiles may be dealt to the threads: those of a CTA are ordered by its barriers alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from random import Random

from tests.fuzz.drawn_answers import Compared, compare_with, run
from tests.fuzz.draws import DRAWS, HEAD, MASKS, PLACES, WORDS, Line, Place, answer_by_one, write_access
from tests.fuzz.pair_answers import build

MEMBERS = 2
"""The threads of a CTA that draw."""
MOST = 3
"""The tiles that are dealt in every way."""
OWN: Place = (("tile", 1),)
BARRIER = Line("barrier")


@dataclass(frozen=True, slots=True)
class TeamPlan:
    """A kernel: what a thread does before it draws, in each round, and behind its last one. With ``warps``, those who
    draw are of different warps, of which the other lanes do nothing.
    """

    before: tuple[Line, ...]
    body: tuple[Line, ...]
    behind: tuple[Line, ...] = ()
    warps: bool = False
    draw: str = DRAWS[0]
    ctas: int = 2


def write(plan: TeamPlan) -> str:
    """The module."""
    labels: Iterator[int] = iter(range(1000))
    lines = [HEAD]
    if plan.warps:
        lines = [HEAD.replace(f".reqntid {MEMBERS},", f".reqntid {32 * MEMBERS},")]
        lines += ["mov.u32 %r13, %laneid;", "setp.ne.u32 %p, %r13, 0;", "@%p bra X;", "shr.u32 %r2, %r2, 5;"]
    for line in plan.before:
        lines += write_access(line, labels) if line.what != "barrier" else [_barrier(plan)]
    lines += ["L:", f"atom.{plan.draw}.global.add.u32 %r5, [%a2], 1;", "setp.ge.u32 %p, %r5, %r0;", "@%p bra E;"]
    for line in plan.body:
        lines += write_access(line, labels) if line.what != "barrier" else [_barrier(plan)]
    lines += ["mov.u32 %r4, %r5;", "add.u32 %r3, %r3, 1;", "bra L;", "E:"]
    for line in plan.behind:
        lines += write_access(line, labels) if line.what != "barrier" else [_barrier(plan)]
    return "\n".join((*lines, "X:", "ret;", "}", ""))


def _barrier(plan: TeamPlan) -> str:
    return "barrier.sync 0;" if plan.warps else "bar.sync 0;"


def read_launch(plan: TeamPlan, tiles: int) -> dict[str, object]:
    """The launch."""
    params = {"out": {"buffer": 4 * WORDS}, "count": {"buffer": 4, "init": {"hex": "00000000"}}, "tiles": tiles}
    return {"grid": plan.ctas, "params": params}


# --- the judge --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Access:
    """An access of a word, after so many barriers."""

    space: str
    word: int
    writes: bool
    barriers: int


def follow(plan: TeamPlan, cta: int, thread: int, numbers: tuple[int, ...], tiles: int) -> list[Access]:
    """What a thread accesses that draws these tiles, and then a number behind them that is its own."""
    state = {"cta": cta, "thread": thread, "round": 0, "before": 0, "tile": 0, "next": 0, "slot": 0, "one": 1}
    done: list[Access] = []
    barriers = 0

    def step(line: Line) -> None:
        nonlocal barriers
        if line.what == "barrier":
            barriers += 1
            return
        mask = line.mask
        fits = mask is None or {
            "==": state[mask[0]] == mask[2], "!=": state[mask[0]] != mask[2],
            "<": state[mask[0]] < mask[2], ">=": state[mask[0]] >= mask[2],
        }[mask[1]]  # fmt: skip
        if line.who in (None, thread) and fits:
            word = sum(state[name] * times for name, times in line.place)
            done.append(Access(line.space, word, line.what == "store", barriers))

    for line in plan.before:
        step(line)
    for number in numbers:
        state["tile"] = number
        for line in plan.body:
            step(line)
        state["before"], state["round"] = number, state["round"] + 1
    state["tile"] = tiles + MEMBERS * cta + thread
    for line in plan.behind:
        step(line)
    return done


def judge(plan: TeamPlan, tiles: int) -> str:
    """The error that a kernel has: "race" or "outside"; "" if it has none."""
    members = list(product(range(plan.ctas), range(MEMBERS)))
    for dealt in product(members, repeat=tiles):
        done = {
            me: follow(plan, *me, tuple(k for k, owner in enumerate(dealt) if owner == me), tiles) for me in members
        }
        if any(a.space == "global" and not 0 <= a.word < WORDS for one in done.values() for a in one):
            return "outside"
        for (one, mine), (other, theirs) in product(done.items(), repeat=2):
            if one < other and _meets(mine, theirs, together=one[0] == other[0]):
                return "race"
    return ""


def _meets(mine: list[Access], theirs: list[Access], *, together: bool) -> bool:
    """Whether two threads access a word without a barrier between; ``together``: of one CTA."""
    return any(
        a.word == b.word and a.space == b.space and (a.writes or b.writes)
        and (a.barriers == b.barriers if together else a.space == "global")
        for a, b in product(mine, theirs)
    )  # fmt: skip


# --- plans ------------------------------------------------------------------------------------------------------------


def _touch(random: Random) -> Line:
    if random.random() < 0.4:
        mine = random.choice(((("thread", 1),), (("thread", 1), ("one", 1)), (("one", 2),), (("thread", 4),)))
        return Line(random.choice(("store", "load")), mine, "shared", random.choice((None, None, 0, 1)))
    place = random.choice((OWN, OWN, OWN, *(p for p in PLACES if "next" not in dict(p))))
    mask = random.choice(MASKS) if random.random() < 0.4 else None
    return Line(random.choice(("store", "store", "load")), place, "global", random.choice((None, None, None, 0)), mask)


def generate(random: Random) -> TeamPlan:
    """A plan."""

    def some(*numbers: int) -> tuple[Line, ...]:
        return tuple(_touch(random) for _ in range(random.choice(numbers)))

    known = {"cta", "thread", "one"}
    early = tuple(replace(line, mask=None) for line in some(0, 1, 1, 2, 2) if known.issuperset(dict(line.place)))
    # Of lanes of a warp that store to one place by one instruction, one does.
    early = tuple(line if "thread" in dict(line.place) else replace(line, who=line.who or 0) for line in early)
    if random.random() < 0.7:
        early = (*early, BARRIER)
    behind = tuple(
        replace(line, mask=line.mask or random.choice((None, ("round", "==", random.randint(0, 4)))))
        for line in some(0, 0, 0, 1, 1)
    )
    if behind and random.random() < 0.2:
        behind = (BARRIER, *behind)
    return TeamPlan(
        early, some(1, 1, 2, 3), behind, random.random() < 0.5, random.choice(DRAWS), random.choice((2, 2, 3))
    )


def judge_few(plan: TeamPlan, tiles: int) -> str:
    """The error that a kernel has, with as many tiles as can be dealt in all ways."""
    return judge(plan, min(tiles, MOST))


def compare(plan: TeamPlan, tiles: int, seconds: float = 20.0) -> Compared:
    """The answer and the error that is there, by ``compare_with``."""
    given = build(write(plan), read_launch(plan, tiles), cooperative=False)
    return compare_with(*answer_by_one(*given, seconds), judge_few(plan, tiles))


if __name__ == "__main__":
    sys.exit(run("threads", 3, generate, compare, judge_few))
