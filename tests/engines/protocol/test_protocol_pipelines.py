"""Loops of any number of rounds whose copies end by groups, arrives or states: proved, and held against full runs."""

from __future__ import annotations

from functools import partial

import pytest

from mcheck.answers.merged_answers import ends_search
from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.cat import load_model
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.every_n import check_every_number
from mcheck.checking.policy.question import Completeness, Question
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.passes import passes_without
from mcheck.engines.protocol.reduction.event_merging import merge_events
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program
from mcheck.proofs.parametric_proof import prove
from tests.engines.protocol.pipelines import RIGHT, WRONG, stores

MODEL = load_model("ptx-9.0")


def family(text: str) -> Program:
    return parse(text, "any.litmus", every=True)


def full(program: Program, number: int, *without: str) -> Answer:
    assert program.instance is not None
    return check(program.instance(number), MODEL, passes=passes_without(without))


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_proved_as_full_runs_say_for_three_periods_more(name: str) -> None:
    program = family(RIGHT[name])
    given = prove(program, MODEL, "ptx", 2, Limit(None))
    assert given.answer.verdict == "proved"
    assert given.period <= 4
    for number in range(given.first, given.first + 3 * given.period + 1, given.period + 1):
        found = full(program, number)
        assert (found.verdict, found.executions) == ("proved", 1), number


@pytest.mark.daily(days=48, least=0)
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found_with_the_number_that_full_runs_show_it_with(name: str) -> None:
    program = family(WRONG[name])
    alone = [full(program, number) for number in range(6)]
    first = next(number for number, found in enumerate(alone) if ends_search(found, None))
    given = check_every_number(
        program, None, lambda one, _: check(one, MODEL), lambda limit: prove(program, MODEL, "ptx", 2, limit)
    )
    assert given.verdict == "finding"
    assert f"with N = {first}," in (given.reason or "")
    assert {f.code for f in alone[first].findings} <= {f.code for f in given.findings}


def test_bulk_stores_that_nobody_waits_for_are_proved_with_what_is_for_review() -> None:
    given = prove(family(stores(end="")), MODEL, "ptx", 2, Limit(None))
    assert [f.code for f in given.answer.findings] == ["UB501"]


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("name", ["stores-and-reads", "arrives", "few-groups-at-the-end", "one-store-too-many-is-read"])
def test_what_is_forgotten_of_copies_in_flight_changes_no_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = family({**RIGHT, **WRONG}[name])
    monkeypatch.setattr("mcheck.engines.protocol.execution.machine.MERGE_THRESHOLD", 8)
    monkeypatch.setattr("mcheck.engines.protocol.reduction.event_merging.MERGE_THRESHOLD", 8)
    monkeypatch.setattr("mcheck.engines.protocol.reduction.event_merging.GROWTH_FACTOR", 1)
    monkeypatch.setattr("mcheck.engines.protocol.incremental.indistinguishable.MIN_FRACTION", 1 << 30)
    answers = []
    for without in ((), ("event-merging",), ("completion-classes",)):
        found = full(program, 8, *without)
        answers.append((found.verdict, sorted(f.message for f in found.findings)))
    assert answers[0] == answers[1] == answers[2]


COPIES = """PTX copies
{{
  .global .align 4 .u32 src[8], other[32];
  .shared .align 4 .u32 buf[8];
}}
P@cta 0 {{
  for k in 0..7 {{
    cp.async.ca.shared.global [buf + 4*k], [src + 4*k], 4;
    {commit}
  }}
  st.global.u32 [other], 1;
  {wait}
  st.global.u32 [other], 2;
  ld.shared.u32 r0, [buf + 4*{place}];
}}
"""
ENDED = {
    "as-many-as-are-deep": ("cp.async.commit_group;", "cp.async.wait_group 5;", 2),
    "one-wait-after-the-other": ("cp.async.commit_group;", "cp.async.wait_group 5; cp.async.wait_group 3;", 4),
    "what-is-in-no-group-yet": ("if (k < 3) { cp.async.commit_group; }", "cp.async.wait_group 0;", 3),
    "some-in-one-group": ("if (k%3 == 2) { cp.async.commit_group; }", "cp.async.wait_group 1;", 3),
}
"""How copies are put into groups and waited for, and how many of them are over then."""


OF_EVERY_DAY = {"as-many-as-are-deep", "what-is-in-no-group-yet"}
"""The cases that notice if copies become one whose groups a wait tells apart, or one of whose groups is open."""


@pytest.mark.daily
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in OF_EVERY_DAY else pytest.mark.daily(least=0)) for n in ENDED]
)
def test_a_wait_ends_its_groups_alone_whatever_is_forgotten(
    name: str, all_tests: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, wait, over = ENDED[name]
    monkeypatch.setattr("mcheck.engines.protocol.operations.races.merge_events", partial(merge_events, every=True))
    monkeypatch.setattr("mcheck.engines.protocol.execution.machine.MERGE_THRESHOLD", 0)
    monkeypatch.setattr("mcheck.engines.protocol.reduction.event_merging.MERGE_THRESHOLD", 0)
    monkeypatch.setattr("mcheck.engines.protocol.reduction.event_merging.GROWTH_FACTOR", 0)
    for place in range(7) if all_tests else (over - 1, over, 6):
        program = parse(COPIES.format(commit=commit, wait=wait, place=place), "copies.litmus")
        expected = {"RACE003"} if place >= over else set[str]()
        for engine in ("explicit", "protocol"):
            given = ask(program, MODEL, Question(about=Completeness.FINDINGS), engine)
            assert {f.code for f in given.findings} == expected, (engine, place)
