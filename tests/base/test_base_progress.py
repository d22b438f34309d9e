"""How far work has come: notes of levels, and where the text of a reason takes them in."""

from __future__ import annotations

from mcheck.base.progress import Level, begin, describe, note
from mcheck.base.reasons import Cause, Reason, format_reasons, timeout_reason, with_progress


def test_a_level_forgets_what_was_noted_of_its_parts() -> None:
    begin()
    assert describe() == ""
    note(Level.EXECUTIONS, "9 executions explored")
    note(Level.CLUSTERS, "class 1 of 3 of clusters")
    note(Level.EXECUTIONS, "2 executions explored")
    note(Level.NUMBER, "checking N = 4")
    assert describe() == "checking N = 4"
    note(Level.LOOP, "P is in iteration 70 of the loop at line 3")
    note(Level.LAUNCH, "launch 2 of 2")
    note(Level.EXECUTIONS, "1 execution explored")
    assert describe() == "launch 2 of 2, 1 execution explored"
    begin()
    assert describe() == ""


def test_the_last_time_out_says_how_far_it_came() -> None:
    said = (timeout_reason(3), Reason(Cause.UNSUPPORTED, "x"), timeout_reason(3))
    assert format_reasons(with_progress(said, "launch 1 of 2")) == "x; no answer within 3 s; by then: launch 1 of 2"
    known = (timeout_reason(3, "a lane is in iteration 7 of its loops"),)
    assert with_progress(known, "launch 1 of 2") == known
    assert with_progress((Reason(Cause.UNSUPPORTED, "x"),), "launch 1 of 2") == (Reason(Cause.UNSUPPORTED, "x"),)
    assert with_progress(said, "") == said
