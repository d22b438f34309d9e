"""Answers about several instances, as one."""

from __future__ import annotations

from mcheck.answers.merged_answers import merge_proved
from mcheck.answers.result import Answer
from mcheck.answers.verdict_rules import add_verdict
from mcheck.base.reasons import Cause, Reason
from mcheck.base.verdicts import Verdict

WHY = Reason(Cause.PERIODIC, "the state repeats")
WHOLE = Answer(verdict=Verdict.PROVED, covered=True)
PART = Answer(verdict=Verdict.BOUNDED, reasons=(Reason(Cause.BOUND, "2 rounds"),))


def test_all_instances_are_covered_if_each_is() -> None:
    merged = merge_proved(WHOLE, [WHOLE, WHOLE], 2, WHY)
    assert (merged.verdict, merged.covered) == (Verdict.PROVED, True)
    assert add_verdict(merged).verdict is Verdict.PROVED


def test_an_instance_that_is_not_covered_leaves_none_of_them_covered() -> None:
    """Nor does one that looks at the merged answer again find it proved."""
    for given in (WHOLE, PART):
        merged = merge_proved(given, [WHOLE, PART], 2, WHY)
        assert (merged.verdict, merged.covered) == (Verdict.UNKNOWN, False)
        assert add_verdict(merged).verdict is not Verdict.PROVED


def test_an_answer_that_does_not_say_that_it_covers_everything_is_not_proved() -> None:
    assert add_verdict(Answer(verdict=Verdict.PASS)).verdict is Verdict.UNKNOWN
