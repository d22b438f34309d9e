"""Scans whose warps look back: the argument about words that clusters look at, beside all interleavings of their lanes;
and what is known of the cases of a look.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from mcheck.simt.grid.looks.known_bits import Bits
from mcheck.simt.grid.looks.looking_clusters import WAITS_FOR_LATER
from mcheck.simt.grid.looks.warp_looks import combine
from mcheck.simt.grid.looks.warp_states import MAX_CASES, Case, merge
from tests.fuzz.looking_warps import Plan, answer, generate, is_wrong, judge

RIGHT = Plan()


@pytest.mark.daily
@pytest.mark.parametrize(
    "plan",
    [
        RIGHT,
        replace(RIGHT, selects=True),
        replace(RIGHT, lanes=1, waits="alone"),
        replace(RIGHT, acquires="none", load="acquire.gpu", ctas=2),
        replace(RIGHT, releases="none", store="release.gpu", ctas=2),
        replace(RIGHT, form="pair", waits="alone"),
        replace(RIGHT, form="word", lanes=3),
    ],
)
def test_right_scans_are_proved(plan: Plan) -> None:
    assert (judge(plan), answer(plan)) == ("fine", "proved")


@pytest.mark.daily
@pytest.mark.parametrize(
    "plan",
    [
        replace(RIGHT, releases="none"),
        replace(RIGHT, releases="narrow"),
        replace(RIGHT, releases="late"),
        replace(RIGHT, acquires="none"),
        replace(RIGHT, acquires="narrow"),
        replace(RIGHT, acquires="early"),
        replace(RIGHT, reads="wrong"),
        replace(RIGHT, reads="whole"),
        replace(RIGHT, reads="wrong", selects=True),
        replace(RIGHT, again=True),
        replace(RIGHT, waits="never"),
        replace(RIGHT, form="pair", store="relaxed.cta"),
    ],
)
def test_scans_with_a_race_are_not(plan: Plan) -> None:
    assert judge(plan) == "race"
    assert answer(plan) != "proved"


@pytest.mark.parametrize("plan", [replace(RIGHT, reverse=True), replace(RIGHT, start=1, lanes=1, form="word")])
def test_scans_that_wait_for_later_tickets_are_not(plan: Plan) -> None:
    assert (judge(plan), answer(plan)) == ("stuck", WAITS_FOR_LATER)


def sampled(seed: int, count: int) -> list[tuple[Plan, str, str]]:
    rng = random.Random(seed)
    return [(plan, answer(plan), judge(plan)) for plan in (generate(rng) for _ in range(count))]


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(24))
def test_random_scans_are_judged_by_all_interleavings(seed: int) -> None:
    answers = sampled(seed, 12)
    assert [one for one in answers if is_wrong(*one[1:])] == []


@pytest.mark.slow
def test_many_random_scans_are_judged_by_all_interleavings() -> None:
    assert [one for one in sampled(100, 600) if is_wrong(*one[1:])] == []


def case(value: int, unknown: int = 0, cells: frozenset[int] = frozenset()) -> Case:
    return Case(Bits(np.array([value], np.uint64), np.array([unknown], np.uint64)), cells)


def test_cases_with_equal_values_publish_what_both_do() -> None:
    (one,) = merge([case(1, cells=frozenset((4, 5))), case(1, cells=frozenset((5, 6)))])
    assert one.cells == {5}
    (one,) = merge([case(1, cells=frozenset((4,))), case(0, 3, cells=frozenset((4, 5)))])
    assert (one.cells, int(one.bits.unknown[0])) == ({4}, 3)
    assert len(merge([case(k) for k in range(MAX_CASES)])) == MAX_CASES
    assert len(merge([case(k) for k in range(MAX_CASES + 1)])) == 1


def test_cases_of_a_vector_are_all_combinations() -> None:
    status, value = [case(0), case(1), case(2)], [case(0), case(7)]
    assert len(combine([status, [case(0, 255)]])) == 3
    assert len(combine([status, value])) == 3  # too many: those of the value are one
    assert len(combine([value, value])) == 4
