"""Proofs for any number of rounds about loops that pass values through shared memory: against executions with many
numbers, which share nothing with them.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.fuzz.passed_rounds import LATE, WARP, WORDS, Code, Comparison, Line, Plan, compare, generate, judge

SEEDS = 289
PER_TEST = 3
BARRIER = Line("barrier")
FIRST = (0,) * WORDS
COUNT = (
    Line("load", 0, to=0), BARRIER, Line("store", 0, value="v0", more=1, who=0), BARRIER,
)  # fmt: skip


def racing(test: Comparison) -> tuple[Line, ...]:
    """A race in the rounds in which something holds."""
    return (Line("store", 7, value=1, who=0, test=test), Line("load", 7, to=2, who=WARP, test=test))


def plan(*body: Line) -> Plan:
    return Plan(WARP + 2, FIRST, (Code((), body, ()),))


RACES = {
    "a counter": plan(*COUNT, *racing(Comparison("v0", "==", LATE))),
    "the low bit of a counter": plan(*COUNT, *racing(Comparison("v0", "==", 1, 1))),
    "the number of the round": plan(
        Line("store", 1, value="round", who=0), BARRIER, Line("load", 1, to=1), BARRIER,
        *racing(Comparison("v1", ">=", LATE)),
    ),
    "what is left": plan(
        Line("store", 1, value="left", who=0), BARRIER, Line("load", 1, to=1), BARRIER,
        *racing(Comparison("v1", "==", LATE)),
    ),
    "a missing barrier": plan(Line("store", 1, value=1, who=0), Line("load", 1, to=1), BARRIER),
    "one barrier for a word": plan(Line("store", 1, value=1, who=0), BARRIER, Line("load", 1, to=1)),
}  # fmt: skip
RIGHT = {
    "the same in each round": plan(
        Line("store", 1, value=0, who=0), BARRIER, Line("load", 1, to=1), BARRIER, *racing(Comparison("v1", "==", 2)),
    ),
    "the first contents": plan(Line("load", 1, to=1), BARRIER, *racing(Comparison("v1", "==", 2)), BARRIER),
}  # fmt: skip


@pytest.mark.parametrize("given", RACES.values(), ids=RACES)
def test_what_races_with_some_number_is_not_proved(given: Plan) -> None:
    answer, wrong, said = compare(given)
    assert said == "race"
    assert not wrong
    assert answer in ("finding", "unknown")


@pytest.mark.parametrize("given", RIGHT.values(), ids=RIGHT)
def test_what_stays_the_same_is_proved(given: Plan) -> None:
    assert not judge(given, LATE + 1)
    assert compare(given) == ("proved", "", "right")


@pytest.mark.daily
@pytest.mark.parametrize("first", range(1, SEEDS, PER_TEST))
def test_what_is_proved_has_no_race_with_any_number(first: int) -> None:
    for seed in range(first, first + PER_TEST):
        given = generate(Random(seed))
        assert not compare(given)[1], f"seed {seed}: {given}"
