"""Words with more writes than are looked at: what may stand before them all is not proved."""

from __future__ import annotations

from typing import Any

import pytest

from mcheck.cat import load_model
from mcheck.cat.tags import Tag
from mcheck.engines.explicit.engine import answer as enumerated
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.final_states import answer
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.operations import coherence_positions
from mcheck.engines.protocol.state.agent import Agent
from mcheck.events.event import Event
from mcheck.frontend.litmus import parse

TEXT = """PTX many
{{
  .global .u32 x = 0;
}}
a@cta 0, warp 0, lane 0 {{
  {stores}
}}
b@cta 0, warp 1, lane 0 {{
  {other}
}}
"""


@pytest.mark.daily(days=4)
@pytest.mark.parametrize("other", ["st.relaxed.gpu.u32 [x], 99;", ".reg .b32 r; atom.relaxed.gpu.exch.b32 r, [x], 99;"])
@pytest.mark.parametrize(("count", "verdict"), [(4, "proved"), (16, "bounded")])
def test_a_write_that_may_stand_before_many(other: str, count: int, verdict: str) -> None:
    stores = "\n  ".join(f"st.relaxed.gpu.u32 [x], {k};" for k in range(1, count + 1))
    found = check(parse(TEXT.format(stores=stores, other=other), "many.litmus"), load_model("ptx-9.0"))
    assert found.verdict == verdict, found.reason


@pytest.mark.parametrize(("zeros", "verdict"), [(2, "proved"), (14, "bounded")])
def test_a_wait_for_a_value_that_stood_before_many(zeros: int, verdict: str) -> None:
    """What does not fit is not asked about, but where it hides what is further back."""
    stores = "\n  ".join(f"st.relaxed.gpu.u32 [x], {value};" for value in (1, *[0] * zeros, 2))
    text = TEXT.format(stores=stores, other="await ld.relaxed.gpu.u32 r0, [x] != 0;")
    found = check(parse(text, "many.litmus"), load_model("ptx-9.0"))
    assert found.verdict == verdict, found.reason


SEEN = """PTX seen
{{ .global .u32 x = 0, y = 0; }}
one@cta 0, warp 0, lane 0 {{
  st.relaxed.cta.global.u32 [x], 2;
  bar.sync 0;
  st.global.u32 [y], 7;
  st.{} [x], 1;
}}
all@cta 0, warp 1 {{
  bar.sync 0;
  await ld.{} r0, [x] == 1;
  ld.global.u32 r1, [y];
}}
"""


def test_a_crowd_that_waits_asks_only_about_values_that_would_end_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Event] = []
    before = coherence_positions.is_allowed

    def counted(m: Machine, agent: Agent, event: Event, *given: Any, **named: Any) -> bool:
        asked.append(event)
        return before(m, agent, event, *given, **named)

    monkeypatch.setattr(coherence_positions, "is_allowed", counted)
    model = load_model("ptx-9.0")
    right = parse(SEEN.format("release.cta.global.u32", "acquire.cta.global.u32"), "seen.litmus")
    assert check(right, model).verdict == "proved"
    reads = [event for event in asked if Tag.R in event.tags]
    assert not reads
    wrong = parse(SEEN.format("relaxed.cta.global.u32", "acquire.cta.global.u32"), "seen.litmus")
    assert {f.code for f in check(wrong, model).findings} == {"RACE001"}


@pytest.mark.daily
@pytest.mark.parametrize("asked", ["== 0", "!= 0", "< 3", "> 1", "== 2"])
def test_waits_see_the_states_that_all_executions_show(asked: str) -> None:
    text = TEXT.format(
        stores="st.relaxed.gpu.u32 [x], 1; st.relaxed.gpu.u32 [x], 2; st.relaxed.gpu.u32 [x], 0;",
        other=f"await ld.relaxed.gpu.u32 r0, [x] {asked}; ld.relaxed.gpu.u32 r1, [x];",
    )
    program = parse(f"{text}locations [b:r0; b:r1;]\n", "states.litmus")
    model = load_model("ptx-9.0")
    states = {o.state for o in answer(program, model).outcomes}
    assert states == {o.state for o in enumerated(program, model).outcomes}
    assert states


STATES = {
    "signed and unsigned minima do not commute": (
        "red.relaxed.gpu.global.min.s32 [x], 0xffffffff;",
        "red.relaxed.gpu.global.min.u32 [x], 5;",
        {5, 0xFFFFFFFF},
    ),
    "a store may come before a reduction, or behind it": (
        "st.relaxed.gpu.u32 [x], 5;",
        "red.relaxed.gpu.global.add.u32 [x], 1;",
        {5, 6},
    ),
    "one function twice": (
        "red.relaxed.gpu.global.inc.u32 [x], 1;",
        "red.relaxed.gpu.global.inc.u32 [x], 1;",
        {0},
    ),
    "two functions": (
        "red.relaxed.gpu.global.inc.u32 [x], 1;",
        "red.relaxed.gpu.global.inc.u32 [x], 0;",
        {0, 1},
    ),
}


@pytest.mark.daily
@pytest.mark.parametrize(("one", "two", "values"), STATES.values(), ids=STATES)
def test_what_may_change_places_does(one: str, two: str, values: set[int]) -> None:
    text = f"PTX t\n{{ .global .u32 x; }}\na@cta 0 {{ {one} }}\nb@cta 1 {{ {two} }}\nlocations [x;]\n"
    for lines in (text, text.replace("a@cta 0", "a@cta 2")):  # the order of the roles is that of the first execution
        found = answer(parse(lines, "t.litmus"), load_model("ptx-9.0"))
        assert {dict(o.state)["x"] for o in found.outcomes} == values


CROWD = """PTX crowd
{{ .shared .u32 x; }}
all@cta 0, warp 0..2 {{
  .reg .b32 r;
  {} [x], {};
}}
"""


@pytest.mark.daily
@pytest.mark.parametrize(
    ("opcode", "operand"),
    [("red.shared.inc.u32", 9), ("red.shared.add.f32", "0f3F800000"), ("red.shared.inc.u32", "%laneid")],
)
def test_a_crowd_at_a_word_that_nobody_reads(opcode: str, operand: object) -> None:
    """The order in which they come is of no consequence, whatever they do there."""
    found = check(parse(CROWD.format(opcode, operand), "crowd.litmus"), load_model("ptx-9.0"))
    assert (found.verdict, found.executions) == ("proved", 1)


COUNTED = """PTX counted
{{ .global .u32 f = {first}, x = 0; }}
a@cta 0 {{ st.global.u32 [x], 1; {one}; }}
b@cta 1 {{ {own}; await ld.acquire.gpu.global.{kind} r1, [f] {compare}; ld.global.u32 r0, [x]; }}
"""
ADD = "red.release.gpu.global.add.u32 [f], {}"


@pytest.mark.daily
@pytest.mark.parametrize(
    ("first", "one", "own", "kind", "compare", "verdict"),
    [
        (0, ADD.format(1), ADD.format(1), "u32", ">= 1", "finding"),
        (0, ADD.format(1), ADD.format(1), "u32", "> 1", "proved"),
        (0, ADD.format(1), ADD.format(1), "u32", "== 2", "proved"),
        (0, ADD.format(1), ADD.format(1), "u32", "!= 0", "finding"),
        (0, ADD.format(1), ADD.format(3), "u32", ">= 3", "finding"),
        (0, ADD.format(1), ADD.format(3), "u32", ">= 4", "proved"),
        (0, ADD.format(1), ADD.format(0xFFFFFFFF), "s32", "< 1", "finding"),
        (1, "red.release.gpu.global.and.b32 [f], 6", "red.release.gpu.global.or.b32 [f], 2", "u32", ">= 2", "finding"),
    ],
)
def test_a_wait_that_the_own_addition_ends(
    first: int, one: str, own: str, kind: str, compare: str, verdict: str
) -> None:
    """A counter that need not wait for the other thread, though it did in the order that is run first: what was there
    before the other's addition would not end the wait, but the own one does.
    """
    text = COUNTED.format(first=first, one=one, own=own, kind=kind, compare=compare)
    for lines in (text, text.replace("a@cta 0", "a@cta 2")):
        program = parse(lines, "counted.litmus")
        assert check(program, load_model("ptx-9.0")).verdict == verdict
        races = {f.code for f in enumerated(program, load_model("ptx-9.0"), findings=True).findings}
        assert bool(races) is (verdict == "finding")


BEHIND_ONE = """PTX behind-one
{ .global .u32 x = 0, y = 0; }
first@cta 0 { st.relaxed.gpu.u32 [x], 1; st.relaxed.gpu.u32 [y], 1; bar.sync 0; }
one@cta 0, warp 1, lane 0 { bar.sync 0; st.relaxed.gpu.u32 [x], 2; st.relaxed.gpu.u32 [y], 3; }
two@cta 0, warp 2, lane 0 { bar.sync 0; st.relaxed.gpu.u32 [y], 2; st.relaxed.gpu.u32 [x], 3; }
locations [x; y;]
"""


def test_a_write_may_stand_between_one_that_is_known_and_one_that_is_not() -> None:
    program, model = parse(BEHIND_ONE, "behind.litmus"), load_model("ptx-9.0")
    states = {o.state for o in answer(program, model).outcomes}
    assert len(states) == 4
    assert states == {o.state for o in enumerated(program, model).outcomes}
