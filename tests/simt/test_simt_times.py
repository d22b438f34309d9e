"""What is found before the time is over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.modules import cases
from mcheck.answers.result import Answer
from mcheck.base.budget import Limit, TimeOut
from mcheck.base.reasons import timeout_reason
from mcheck.cat import load_model
from mcheck.checking.check.modules import check_text
from mcheck.checking.modules import answer as answering
from mcheck.checking.policy.question import Completeness, Question
from mcheck.checking.run.case import Options, Settings
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ir.program import Program
from mcheck.simt.trace_extraction import ClusterTrace


def test_what_the_shorter_program_shows_is_told_though_no_time_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longer one, whose lines are better, would need time of its own."""
    case = next(c for c in cases() if c.label == "tilelang/product_sm90 product-not-awaited")
    asked: list[Answer] = []
    ask, over = answering.ask, Limit.is_over

    def once(*given: object) -> Answer:
        asked.append(ask(*given))  # type: ignore[arg-type]
        return asked[-1]

    monkeypatch.setattr(answering, "ask", once)
    monkeypatch.setattr(Limit, "is_over", lambda limit: bool(asked) or over(limit))
    read = parse_module(case.text(), str(case.path))
    question = Question(about=Completeness.FINDINGS, timeout=60)
    found = answering.answer_launch(
        read, build_launch(read, from_object(case.launch())), load_model("ptx-9.0"), question
    )
    assert len(asked) == 1
    assert found.findings == asked[0].findings != ()


def test_no_other_way_is_begun_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first way has shown is told: the process that tells it has half a second left."""
    case = next(c for c in cases() if c.label == "cuda/ring_bulk")
    read = parse_module(case.text(), str(case.path))
    given = Answer(verdict="unknown", engine="protocol", reasons=(timeout_reason(60),))
    asked: list[Program] = []
    extract, over = answering.extract_traces, Limit.is_over

    def ways(*a: object, **named: object) -> Iterator[ClusterTrace]:
        yield from extract(*a, **named)  # type: ignore[arg-type]
        raise AssertionError("another way was asked for")

    def slow(way: Program, *_: object) -> Answer:
        asked.append(way)
        return given

    monkeypatch.setattr(answering, "extract_traces", ways)
    monkeypatch.setattr(answering, "_asked", slow)
    monkeypatch.setattr(Limit, "is_over", lambda limit: bool(asked) or over(limit))
    question = Question(about=Completeness.FINDINGS, timeout=60)
    found = answering.answer_launch(
        read, build_launch(read, from_object(case.launch())), load_model("ptx-9.0"), question
    )
    assert (found.verdict, found.reason, len(asked)) == ("unknown", "no answer within 60 s", 1)


@pytest.mark.parametrize("after", [0, 1])
def test_an_answer_that_the_time_cut_is_not_kept(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """The time is over before the first way of the cluster, or before the second one."""
    case = next(c for c in cases() if c.label == "cuda/ring_bulk")
    extract = answering.extract_traces

    def ways(*a: object, **named: object) -> Iterator[ClusterTrace]:
        yield from list(extract(*a, **named))[:after]  # type: ignore[arg-type]
        raise TimeOut("a lane is in iteration 7 of its loops")

    monkeypatch.setattr(answering, "extract_traces", ways)
    checked = check_text(case.text(), str(case.path), from_object(case.launch()), Settings(timeout=60), Options())
    assert (checked.cut, checked.cacheable) == (True, False)
    assert checked.reason is not None
    assert checked.reason.startswith("no answer within 60 s; a lane is in iteration 7")
