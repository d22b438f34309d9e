"""Races of a grid that two of its clusters show: found where no order is lost between them, left open where some is."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from mcheck.base.budget import Limit
from mcheck.checking.modules.pairs.signalled_grid import answer_signalled
from tests.fuzz.grids import Lines, judge_threads, make_grid
from tests.fuzz.pair_answers import build, follow_pair, say_why
from tests.fuzz.rounds import answer_by_pairs
from tests.simt.grid.test_grid_module_words import IN_VARIABLE, NEXT, OWN, synchronised

SECONDS = 60.0
CTAS = 12


def ask(text: str, ctas: int = CTAS) -> tuple[str | None, tuple[str, ...]]:
    """The answer that pairs of clusters give, and the codes of what they find."""
    given = {"grid": ctas, "params": {"data": {"buffer": 8 * ctas}}}
    module, launch = build(text, given, cooperative=True)
    found, _ = say_why(lambda: answer_signalled(module, launch, partial(follow_pair, module), Limit(SECONDS)))
    return (None, ()) if found is None else (found.verdict.value, tuple(f.code for f in found.findings))


RIGHT = synchronised(CTAS, OWN, NEXT, OWN, NEXT)
DROPPED = synchronised(CTAS, OWN, NEXT + OWN, NEXT)
RACES = {
    "the second barrier is dropped": DROPPED,
    "the first barrier is dropped": synchronised(CTAS, OWN + NEXT, OWN, NEXT),
    "a store behind the last barrier": synchronised(CTAS, OWN, NEXT + "\n" + OWN),
}
OPEN = {
    "fences that may order by the numbers drawn": DROPPED.replace("%a2, counter;", "%a2, counter; fence.acq_rel.gpu;"),
    "fence.sc": DROPPED.replace("%a2, counter;", "%a2, counter; fence.sc.cta;"),
    "membar": DROPPED.replace("%a2, counter;", "%a2, counter; membar.cta;"),
    "an addition that acquires": DROPPED.replace("add.release", "add.acq_rel"),
    "another word that threads of a CTA share": DROPPED.replace(
        "%a2, counter;", "%a2, counter; .shared .u32 w; st.relaxed.cta.shared.u32 [w], 0;"
    ),
}  # fmt: skip


def test_a_right_barrier_is_proved() -> None:
    assert IN_VARIABLE in RIGHT
    assert ask(RIGHT) == ("proved", ())


@pytest.mark.daily
@pytest.mark.parametrize("name", RACES)
def test_a_race_that_a_pair_shows_is_found(name: str) -> None:
    verdict, codes = ask(RACES[name])
    assert verdict == "finding"
    assert set(codes) == {"RACE001"}


@pytest.mark.daily
@pytest.mark.parametrize("name", OPEN)
def test_a_race_of_a_pair_that_other_order_may_prevent_is_left_open(name: str) -> None:
    assert ask(OPEN[name])[0] is None


FIRST_ROW = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 flags) .reqntid 1, 1, 1 {
.reg .pred %p; .reg .b32 %r<9>; .reg .b64 %a<9>;
ld.param.u64 %a1, [data]; ld.param.u64 %a2, [flags];
mov.u32 %r1, %ctaid.x; mul.wide.u32 %a3, %r1, 4; add.s64 %a1, %a1, %a3; add.s64 %a2, %a2, %a3;
mov.u32 %r2, %ctaid.y; setp.eq.u32 %p, %r2, 0; @%p bra WORK;
WAIT: ld.acquire.gpu.global.u32 %r3, [%a2]; setp.ne.u32 %p, %r3, %r2; @%p bra WAIT;
WORK: st.global.u32 [%a1], %r2;
fence.acq_rel.gpu;
red.relaxed.gpu.global.add.u32 [%a2], 1;
ret; }
"""


@pytest.mark.parametrize(
    ("text", "expected"), [(FIRST_ROW, "proved"), (FIRST_ROW.replace("fence.acq_rel.gpu;", ""), None)]
)
def test_the_first_clusters_of_a_grid_need_not_wait(text: str, expected: str | None) -> None:
    given = {"data": {"buffer": 20}, "flags": {"buffer": 20, "init": {"hex": "00" * 20}}}
    module, launch = build(text, {"grid": [5, 3], "params": given}, cooperative=True)
    found, _ = say_why(lambda: answer_signalled(module, launch, partial(follow_pair, module), Limit(SECONDS)))
    assert (None if found is None else found.verdict.value) == expected


# --- order that others carry ------------------------------------------------------------------------------------------

PASSES = ("await ld.acquire.gpu.global.u32 r1, [x] == 1;", "st.release.gpu.global.u32 [y], 1;")
TAKES = ("await ld.acquire.gpu.global.u32 r1, [y] == 1;", "st.global.u32 [d], 2;")


def verdicts(*bodies: Lines) -> tuple[str | None, bool]:
    """The answer that pairs give, and whether the explicit engine finds an error in the grid."""
    grid = make_grid(list(bodies), 1, cooperative=True)
    found, _ = answer_by_pairs(grid, SECONDS)
    return None if found is None else found.verdict.value, bool(judge_threads(grid.draft).kinds)


def test_order_by_another_cluster_is_in_the_pair() -> None:
    first = ("st.global.u32 [d], 1;", "st.release.gpu.global.u32 [x], 1;")
    assert verdicts(first, PASSES, TAKES) == ("proved", False)
    assert verdicts((first[1], first[0]), PASSES, TAKES) == ("finding", True)


def test_what_the_pair_has_lost_is_left_open() -> None:
    """A fence releases the store for both words. The pair waits for no signal: the earlier one is behind the fence."""
    first = (
        "st.global.u32 [d], 1;", "fence.acq_rel.gpu;", "st.relaxed.gpu.global.u32 [z], 1;",
        "st.relaxed.gpu.global.u32 [x], 1;",
    )  # fmt: skip
    grid = make_grid([first, PASSES, TAKES], 1, cooperative=True)
    assert answer_by_pairs(grid, SECONDS) == (None, "the pair is left open")
    assert judge_threads(grid.draft).kinds == frozenset()


# --- against the explicit engine --------------------------------------------------------------------------------------

DATA = ("d", "e")
WORDS = ("x", "y", "z")


def chain(random: Random, ctas: int) -> list[Lines]:
    """CTAs that hand on turns by words of their own, and access the data before or behind."""
    order = random.sample(range(ctas), ctas)
    fenced = random.random() < 0.4
    bodies: list[list[str]] = [[] for _ in range(ctas)]

    def access(me: int) -> None:
        if random.random() < 0.5:
            word, writes = random.choice(DATA), random.random() < 0.6
            bodies[me].append(f"st.global.u32 [{word}], 1;" if writes else f"ld.global.u32 r7, [{word}];")

    for place, me in enumerate(order):
        access(me)
        if place:
            wait = "relaxed" if fenced else "acquire"
            bodies[me].append(f"await ld.{wait}.gpu.global.u32 r1, [{WORDS[place - 1]}] == 1;")
            bodies[me] += ["fence.acq_rel.gpu;"] * fenced
        access(me)
        if place + 1 < ctas:
            bodies[me] += ["fence.acq_rel.gpu;"] * fenced
            access(me)
            signal = "relaxed" if fenced else "release"
            bodies[me].append(f"st.{signal}.gpu.global.u32 [{WORDS[place]}], 1;")
        access(me)
    return [tuple(body) for body in bodies]


@pytest.mark.daily(days=8)
@pytest.mark.parametrize("first", range(0, 120, 5))
def test_what_is_found_in_random_chains_is_an_error_of_the_grid(first: int) -> None:
    for seed in range(first, first + 5):
        random = Random(seed)
        bodies = chain(random, random.choice((2, 3, 3, 4)))
        answer, wrong = verdicts(*bodies)
        assert answer in (None, "finding" if wrong else "proved"), bodies
