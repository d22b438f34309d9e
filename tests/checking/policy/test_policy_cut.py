"""Answers that a time cuts say so, whoever meets its end: the next run may have more to say."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from mcheck.answers.result import Answer
from mcheck.answers.verdict_rules import add_verdict, verdict_of
from mcheck.base.budget import Limit, TimeOut
from mcheck.base.reasons import Cause, Reason, error_reason, format_reasons, timeout_reason
from mcheck.base.verdicts import Verdict
from mcheck.cat import load_model
from mcheck.checking.check.command import check_case
from mcheck.checking.policy import every_n
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.every_number import CheckedNumbers, Unproved, attempt_proof
from mcheck.checking.policy.question import Completeness, Question
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.engines.protocol import exploration, findings_answer
from mcheck.engines.z3.engine import Z3Run
from mcheck.findings.finding import Finding
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program
from tests.checking.policy.test_policy_every_n import COUNTER, RING
from tests.engines.protocol.test_protocol_stale_tensormaps import maps

MODEL = load_model("ptx-9.0")
PACKAGE = Path(__file__).parents[3] / "mcheck"
RACE = Finding(code="RACE001", kind="race", severity="error", said=("a race",), accesses=(), section="8.7")
LATE = timeout_reason(3.0)
RACY = """PTX racy
{ .shared .align 16 .u32 s[4]; .global .align 16 .u32 g[4]; }
P@cta 0 {
  st.shared.u32 [s], 1;
  cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16;
}
Q@cta 0, warp 1 { bar.sync 0; }
"""


# --- the types ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", [Cause.TIME, Cause.MEMORY, Cause.DIED])
def test_an_answer_is_cut_by_its_reasons(cause: Cause) -> None:
    deep = Reason(Cause.NUMBERS, "with N = 3", because=(Reason(cause),))
    assert Answer(verdict=Verdict.UNKNOWN, reasons=(deep,)).cut
    assert not Answer(verdict=Verdict.UNKNOWN, reasons=(Reason(Cause.UNROLLING),)).cut
    assert replace(Answer(verdict=Verdict.UNKNOWN), reasons=(deep,)).cut


def test_no_text_makes_an_answer_cut() -> None:
    said = Reason(Cause.UNSUPPORTED, "no answer within 3 s")
    assert not Answer(verdict=Verdict.UNKNOWN, reasons=(said,)).cut


@pytest.mark.parametrize("cause", list(Cause))
def test_every_cause_has_words(cause: Cause) -> None:
    assert format_reasons((Reason(cause),))
    assert "a thing" in (format_reasons((Reason(cause, "a thing"),)) or "")


def test_the_verdict_about_findings_has_one_rule() -> None:
    bound = Reason(Cause.BOUND, "2 rounds")
    assert verdict_of((), covered=True) == (Verdict.PROVED, ())
    assert verdict_of((), covered=False, reasons=(bound,)) == (Verdict.BOUNDED, (bound,))
    assert verdict_of((), covered=False, reasons=(bound, LATE)) == (Verdict.UNKNOWN, (LATE,))
    assert verdict_of((RACE,), covered=False, reasons=(bound, LATE)) == (Verdict.FINDING, (LATE,))
    verdict, reasons = verdict_of((), covered=False)
    assert (verdict, [r.cause for r in reasons]) == (Verdict.UNKNOWN, [Cause.LEFT_OUT])


def _files_that_name(attribute: str) -> Iterator[tuple[Path, list[ast.AST]]]:
    """The files of the package with an attribute of this name, and their nodes; others are not parsed."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if attribute in text:
            yield path, list(ast.walk(ast.parse(text)))


def test_proved_is_said_in_one_place() -> None:
    """Elsewhere it is compared with."""
    places = []
    for path, nodes in _files_that_name("PROVED"):
        compared = {id(n) for c in nodes if isinstance(c, ast.Compare) for n in ast.walk(c)}
        places += [
            path.relative_to(PACKAGE).as_posix()
            for n in nodes
            if isinstance(n, ast.Attribute) and n.attr == "PROVED" and id(n) not in compared
        ]
    assert set(places) <= {"answers/verdict_rules.py", "checking/run/summary.py"}, places  # the other counts them


def test_no_verdict_is_compared_with_a_text() -> None:
    texts = frozenset(Verdict)
    found = []
    for path, nodes in _files_that_name("verdict"):
        for node in nodes:
            if isinstance(node, ast.Compare) and any(
                isinstance(n, ast.Attribute) and n.attr == "verdict" for n in ast.walk(node)
            ):
                found += [
                    f"{path.name}:{node.lineno}"
                    for n in ast.walk(node)
                    if isinstance(n, ast.Constant) and n.value in texts
                ]
    assert found == []


def test_no_engine_reads_a_reason_in_words() -> None:
    rooms = (
        "engines",
        "proofs",
        "checking/policy",
        "answers",
        "simt",
        "checking/run/single.py",
        "checking/run/inquiry.py",
        "checking/check/inquiry.py",
        "checking/check/selection.py",
    )
    places = [PACKAGE / room for room in rooms]
    files = [p for place in places for p in ([place] if place.suffix else place.rglob("*.py"))]
    said = re.compile(r"\b(given|answer|found|first|one|other|explicit|z3|kernel|silent|best|result)\.reason\b")
    assert [p.name for p in files if said.search(p.read_text(encoding="utf-8"))] == []


# --- who meets the end of a time ----------------------------------------------------------------------------------


def test_what_is_found_before_the_time_is_over_does_not_hide_that_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """An undefined execution decides the verdict, so that the engine's own is not unknown."""

    def late(*_: object, **__: object) -> None:
        raise TimeOut

    monkeypatch.setattr(Z3Run, "search_deadlocks", late)
    given = ask(parse(RACY, "racy.litmus"), MODEL, Question(about=Completeness.FINDINGS, timeout=34.0), "z3")
    assert given.verdict is Verdict.FINDING
    assert given.cut
    assert [r.cause for r in given.reasons] == [Cause.TIME]


def test_a_fix_that_the_time_left_no_room_for_cuts_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The z3 engine's answer is whole, the protocol engine's fix for its finding is not."""
    guarded = Path(__file__).parents[3] / "litmus/classic/MP+rlx+rlx+guarded.litmus"
    program, asked = parse(guarded.read_text(encoding="utf-8"), str(guarded)), Question(about=Completeness.FINDINGS)
    whole = ask(program, MODEL, asked, "z3")
    explored = findings_answer.answer

    def late(*args: object, **named: object) -> Answer:
        given = explored(*args, **named)  # type: ignore[arg-type]
        return replace(given, verdict=Verdict.UNKNOWN, findings=(), reasons=(LATE,))

    monkeypatch.setattr(findings_answer, "answer", late)
    cut = ask(program, MODEL, replace(asked, timeout=30.0), "z3")
    assert (whole.cut, cut.cut) == (False, True)
    assert whole.findings[0].missing != cut.findings[0].missing


def test_memory_that_an_engine_used_up_is_a_limit() -> None:
    from mcheck.base.errors import OutOfMemory

    def work() -> None:
        raise OutOfMemory("out of memory")

    reason = Limit(3.0).attempt(work)
    assert reason is not None
    assert (reason.cause, reason.cut) == (Cause.MEMORY, True)
    assert error_reason(OutOfMemory("out of memory")).cut


def _ring(parity: str, fence: str) -> Program:
    return parse(RING.format(parity=parity, fence=fence), "any.litmus", every=True)


def _asks(change: Callable[[int, Answer], Answer]) -> Callable[[Program, float | None], Answer]:
    """Asks about the program with each number in turn; ``change`` is given the number."""
    numbers = count()

    def answer(one: Program, _: float | None) -> Answer:
        return change(next(numbers), ask(one, MODEL, Question(about=Completeness.FINDINGS), "protocol"))

    return answer


@pytest.mark.daily
@pytest.mark.parametrize("late", [1, 3, 4, 5])
def test_a_smallest_number_is_kept_only_if_no_time_was_over(late: int) -> None:
    """A smaller number without an answer, the number's own answer, and those behind it that are looked at besides, with
    errors that say nothing new (4) or without an answer (5).
    """

    def change(number: int, given: Answer) -> Answer:
        if number != late:
            return given
        return replace(given, reasons=(LATE,)) if number in (3, 4) else Answer(verdict=Verdict.UNKNOWN, reasons=(LATE,))

    whole = every_n.check_every_number(_ring("(k/S)%2", ""), None, _asks(lambda _, given: given))
    cut = every_n.check_every_number(_ring("(k/S)%2", ""), None, _asks(change))
    assert (whole.verdict, whole.cut) == (Verdict.FINDING, False)
    assert (cut.verdict, cut.cut) == (Verdict.FINDING, True)
    if late != 1:  # told as "1 was not checked"
        assert "no answer within 3 s" in (cut.reason or "")


@pytest.mark.daily(days=3, least=0)
def test_numbers_without_an_answer_are_told_and_cut() -> None:
    def answer(one: Program, _: float | None) -> Answer:
        large = len(one.threads[0].code) > 12
        return Answer(verdict=Verdict.UNKNOWN, reasons=(LATE,)) if large else Answer(verdict=Verdict.PROVED)

    given = every_n.check_every_number(parse(COUNTER, "any.litmus", every=True), 10.0, answer)
    assert (given.verdict, given.cut) == (Verdict.UNKNOWN, True)
    assert (given.reason or "").endswith("with N = 18: no answer within 3 s")


def test_patience_that_ends_is_a_time_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(every_n, "PATIENCE", -1.0)
    given = every_n.check_every_number(
        parse(COUNTER, "any.litmus", every=True), None, lambda *_: Answer(verdict=Verdict.PROVED)
    )
    assert (given.verdict, given.cut) == (Verdict.UNKNOWN, True)
    assert "took longer than -1 s" in (given.reason or "")


def test_a_proof_that_takes_too_long_cuts_the_answer() -> None:
    def prove(_: Limit) -> None:
        raise TimeOut

    unproved = attempt_proof(Limit(60.0), prove)
    assert isinstance(unproved, Unproved)
    assert unproved.why[0].cut
    given = every_n.check_every_number(_ring("(k/S)%2", ""), 60.0, _asks(lambda _, given: given), prove)  # type: ignore[arg-type]
    assert (given.verdict, given.cut) == (Verdict.FINDING, True)


def test_a_proof_of_answers_that_were_cut_is_not_kept() -> None:
    whole = CheckedNumbers[int]()
    assert not whole.record(0, Answer(verdict=Verdict.PROVED, cut=True))
    assert 0 in whole.found, "nothing is left to say of it"
    assert not whole.record(1, Answer(verdict=Verdict.UNKNOWN, reasons=(LATE,)))
    assert 1 in whole.slow
    assert whole.record(2, Answer(verdict=Verdict.FINDING, findings=(RACE,), reasons=(LATE,)))
    assert whole.with_errors == [2]


def test_older_maps_that_there_was_no_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a copy by an older map does is looked at last."""
    run = exploration.Search.run

    def late(search: exploration.Search) -> None:
        if search.stale_maps:
            raise TimeOut
        run(search)

    monkeypatch.setattr(exploration.Search, "run", late)
    given = findings_answer.check(maps(), MODEL, timeout=60, thorough=True)
    assert given.cut
    assert "may read a racing tensor map as it was before the write (no answer within 60 s)" in (given.reason or "")


def test_a_second_question_that_was_cut_cuts_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the file expects may be among what there was no time for."""
    told = [
        Answer(verdict=Verdict.FINDING, findings=(RACE,), covered=False),
        Answer(verdict=Verdict.UNKNOWN, reasons=(LATE,)),
    ]
    monkeypatch.setattr("mcheck.checking.check.inquiry.ask", lambda *_: told.pop(0))
    text = RACY + "expect deadlock\n"
    checked = check_case(Case("racy.litmus", text=text), Settings(timeout=60), Options())
    assert (checked.verdict, checked.cut, checked.cacheable) == (Verdict.FINDING, True, False)


def test_an_attempt_that_the_time_given_made_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another engine's answer is whole, and with more time the first engine's would have been given."""

    def slow(name: str, *_: object) -> Answer:
        late = Answer(verdict=Verdict.UNKNOWN, reasons=(LATE,), engine=name)
        return late if name == "explicit" else Answer(verdict=Verdict.PASS, engine=name)

    monkeypatch.setattr("mcheck.checking.policy.ask.ask_engine", slow)
    program = parse("PTX p\n{ .shared .u32 s; }\nP@cta 0 { L: ld.shared.u32 r0, [s]; @%p1 bra L; }\n"
                    "exists (P:r0 == 1)\n", "p.litmus")  # fmt: skip
    assert ask(program, MODEL, Question(timeout=3.0)).cut
    assert not ask(program, MODEL, Question(timeout=60.0)).cut
    assert not ask(program, MODEL, Question()).cut


def test_judging_keeps_that_an_answer_was_cut() -> None:
    undefined = Reason(Cause.UNDEFINED, "RACE003")
    given = add_verdict(Answer(verdict=Verdict.PASS, findings=(RACE,), covered=False, reasons=(undefined, LATE)))
    assert (given.verdict, given.reasons, given.cut) == (Verdict.FINDING, (LATE,), True)
