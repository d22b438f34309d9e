"""Results of both commands: one type, judged by what was asked; errors in a file are its result."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mcheck.base.errors import InternalError
from mcheck.base.reasons import Cause, Reason
from mcheck.checking.check.command import check_command
from mcheck.checking.policy.question import Completeness
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.command import RUN
from mcheck.checking.run.result import Result
from mcheck.checking.run.summary import summarize
from mcheck.findings.finding import Finding
from mcheck.ir.program import CLEAN

RACE = Finding(code="RACE003", kind="race", severity="error", said=("",), accesses=(), section="")
EXPECTED = (("race",),)
COMMANDS = {"run": RUN, "check": check_command(Options())}
TEXT = "PTX a\n{ x=0; }\n P0@cta 0 ;\n st.weak x, 1 ;\nexists (x == 1)\n"


def ran(verdict: str, **more: object) -> Result:
    return Result(path="a", name="a", model="m", verdict=verdict, **more)  # type: ignore[arg-type]


def checked(verdict: str, **more: object) -> Result:
    return ran(verdict, about=Completeness.FINDINGS, **more)


@pytest.mark.parametrize(
    ("result", "status", "headline"),
    [
        (ran("pass", findings=(RACE,)), "ok", "found"),
        (ran("pass", expected="fail"), "mismatch", "mismatch"),
        (ran("pass", findings=(RACE,), expected_kinds=CLEAN), "mismatch", "mismatch"),
        (ran("pass", findings=(RACE,), expected_kinds=EXPECTED), "ok", "ok"),
        (ran("unknown", expected="pass"), "unknown", "unknown"),
        (ran("unknown", findings=(RACE,), expected_kinds=CLEAN), "mismatch", "mismatch"),
        (ran("error", expected="pass"), "error", "error"),
        (checked("finding", findings=(RACE,)), "finding", "finding"),
        (checked("finding", findings=(RACE,), expected_kinds=EXPECTED), "ok", "finding"),
        (checked("finding", suppressed=((RACE, "why"),)), "ok", "ignored"),
        (checked("proved", expected_kinds=EXPECTED), "finding", "proved"),
        (checked("proved", expected="fail"), "ok", "proved"),
        (checked("bounded"), "unknown", "bounded"),
        (checked("unknown", findings=(RACE,), expected_kinds=EXPECTED), "ok", "unknown"),
        (checked("error"), "error", "error"),
    ],
)
def test_a_result_is_judged_by_what_was_asked(result: Result, status: str, headline: str) -> None:
    assert (result.status, result.headline) == (status, headline)


def test_results_are_counted_by_status_and_by_verdict() -> None:
    clean, found, ignored = checked("proved"), checked("finding", findings=(RACE,)), checked(
        "finding", deselected=(RACE,)
    )  # fmt: skip
    counts = summarize([clean, found, ignored, checked("bounded")])
    assert (counts.tests, counts.proved, counts.findings, counts.ignored, counts.open) == (4, 1, 2, 1, 1)
    assert (counts.ok, counts.mismatch, counts.unknown, counts.error) == (2, 1, 1, 0)


@pytest.mark.parametrize(
    ("results", "status"),
    [
        ([ran("pass")], 0),
        ([ran("unknown")], 3),
        ([ran("unknown"), ran("pass", expected="fail")], 1),
        ([checked("unknown"), checked("finding", findings=(RACE,))], 1),
        ([checked("error"), checked("finding", findings=(RACE,))], 2),
        ([ran("error"), ran("error", problem=InternalError("x"))], 70),
    ],
)
def test_the_exit_status_is_that_of_the_worst(results: list[Result], status: int) -> None:
    assert summarize(results).exit_status == status


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    ("error", "verdict", "said"),
    [
        (MemoryError, "unknown", "out of memory"),
        (RecursionError, "unknown", "nested too deeply"),
        (ZeroDivisionError, "error", "ZeroDivisionError"),
    ],
)
def test_an_error_in_a_file_is_its_result(
    name: str, error: Callable[[], Exception], verdict: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise error()

    monkeypatch.setattr("mcheck.checking.policy.ask.ask_engine", fails)
    result = COMMANDS[name].task(Case("a.litmus", text=TEXT), Settings())
    assert (result.verdict, result.name, result.source, result.crashed) == (verdict, "a", TEXT, verdict == "error")
    assert said in (result.reason or "")
    assert result.about is (Completeness.FINDINGS if name == "check" else Completeness.STATES)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_whose_process_died_has_a_result(name: str) -> None:
    lost = COMMANDS[name].lost(Case("b/a.litmus"), Settings(), Reason(Cause.DIED, "it died"), 1.5)
    assert (lost.name, lost.verdict, lost.status, lost.cut, lost.seconds) == ("a", "unknown", "unknown", True, 1.5)


def test_a_result_is_printed_without_the_text_of_its_program() -> None:
    assert "body of a module" not in repr(checked("proved", source="body of a module"))
