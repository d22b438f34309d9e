"""Warps that look at words of another CTA: the argument about looking grids, beside lanes that are executed one look at
a time.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fuzz.looking_lanes import Op, Program, judge
from tests.fuzz.looking_ways import answer, sampled

PUBLISHES: tuple[Op, ...] = (
    ("data", 0, 4), ("fence", "membar.gl"), ("flag", 0, 1, False, "relaxed.gpu", False),
    ("data", 4, 4), ("flag", 0, 2, False, "release.gpu", False),
)  # fmt: skip
LOOK: Op = ("look", 0, 1, 0, False, False, None)
WAIT: Op = ("wait", 0, (LOOK, ("setp", 0, "eq", 0, 0)))
BOTH: Op = ("wait", 0, (LOOK, ("setp", 0, "eq", 0, 0), ("vote", 0, "any", 0, False)))
FENCE: Op = ("fence", "fence.acq_rel.gpu")
FIRST, SECOND = ("load", 1, 0, 4), ("load", 1, 4, 4)
IS_SECOND: Op = ("setp", 0, "eq", 0, 2)
BY_FLAG: Op = ("if", 0, False, (SECOND,), (FIRST,))


def program(*reader: Op, lanes: int = 2, form: str = "u32", writer: tuple[Op, ...] = PUBLISHES) -> Program:
    """A CTA that publishes, and one that does this."""
    return Program(lanes, (form,) * 3, (writer,), reader)


@pytest.mark.daily
@pytest.mark.parametrize("form", ["u32", "u64", "v2"])
def test_right_ones_are_proved(form: str) -> None:
    for wait in (WAIT, BOTH):
        one = program(wait, FENCE, IS_SECOND, BY_FLAG, form=form)
        assert (judge(one), answer(one)) == ("fine", "proved")


@pytest.mark.daily
@pytest.mark.parametrize(
    "wrong",
    [
        program(WAIT, IS_SECOND, BY_FLAG),
        program(WAIT, FENCE, SECOND),
        program(FENCE, WAIT, FIRST),
        program(LOOK, FENCE, FIRST),
        program(WAIT, FENCE, ("shuffle", "idx", 0, 0, 1), IS_SECOND, BY_FLAG),
        program(WAIT, FENCE, IS_SECOND, ("vote", 0, "any", 0, False), BY_FLAG),
        program(WAIT, FENCE, FIRST, writer=(PUBLISHES[0], *PUBLISHES[2:])),
        program(WAIT, FENCE, FIRST, writer=(*PUBLISHES, ("data", 1, 1))),
        program(WAIT, FENCE, FIRST, writer=(PUBLISHES[0], ("fence", "fence.acquire.gpu"), *PUBLISHES[2:])),
        program(WAIT, IS_SECOND, ("vote", 1, "all", 0, False), ("if", 1, False, (("bad",),), ())),
        program(
            ("wait", 0, (LOOK, ("setp", 0, "eq", 1, 0))),
            ("setp", 1, "lt", 0, 2),
            ("if", 1, False, (("bad",),), ()),
            form="v2",
        ),
    ],
)
def test_ones_with_a_race_are_not(wrong: Program) -> None:
    assert judge(wrong) == "race"
    assert answer(wrong) != "proved"


def test_ones_that_do_not_end_are_not() -> None:
    for wait in (("wait", 0, (LOOK, ("setp", 0, "lt", 0, 3))), ("wait", 0, (LOOK, ("setp", 0, "eq", 0, 2)))):
        assert judge(program(wait)) == "stuck"
        assert "forever" in answer(program(wait))
    alone = replace(program(WAIT, IS_SECOND, ("if", 0, False, (("vote", 1, "any", 0, False),), ())), lanes=3)
    assert answer(alone) != "proved"


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("seed", range(12))
def test_random_ones_are_judged_by_executions(seed: int) -> None:
    answers = list(sampled(seed, 60))
    assert [one for one in answers if one[1] == "proved" and one[2] != "fine"] == []
    assert any(found == "proved" for _, found, _ in answers)
