"""What is found before the time is over."""

from __future__ import annotations

import pytest

from benchmarks.modules import cases
from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.limit import Limit
from mcheck.policy.question import About, Question
from mcheck.ptx import answer as answering
from mcheck.ptx.launching import from_object, launch
from mcheck.ptx.reading import module


def test_what_the_shorter_program_shows_is_told_though_no_time_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longer one, whose lines are better, would need time of its own."""
    case = next(c for c in cases() if c.label == "tilelang/product_sm90 product-not-awaited")
    asked: list[Answer] = []
    ask, over = answering.ask, Limit.over

    def once(*given: object) -> Answer:
        asked.append(ask(*given))  # type: ignore[arg-type]
        return asked[-1]

    monkeypatch.setattr(answering, "ask", once)
    monkeypatch.setattr(Limit, "over", lambda limit: bool(asked) or over(limit))
    read = module(case.text(), str(case.path))
    question = Question(about=About.FINDINGS, timeout=60)
    found = answering.answer(read, launch(read, from_object(case.launch())), load_model("ptx-9.0"), question)
    assert len(asked) == 1
    assert found.findings == asked[0].findings != ()
