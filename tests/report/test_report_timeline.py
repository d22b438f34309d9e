"""The picture of a finding: a lane per CTA, what one has seen of another, and the order that a race lacks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcheck.base.errors import Span
from mcheck.events.execution_graph import Execution
from mcheck.findings.finding import Access, Finding
from mcheck.findings.trace import Step, StepKind
from mcheck.ptx import check
from mcheck.report.picture.layout import lay_out
from mcheck.report.picture.svg import draw
from mcheck.report.picture.timeline import draw_timeline
from mcheck.report.site.schedules import draw_findings

LAUNCHES = Path(__file__).parents[1] / "simt" / "launch"
GOLDEN = Path(__file__).parent / "pictures"
WRITER, READER = "cta(0, 0, 0).warp0[0]", "cta(2, 0, 0).warp0[0]"


def span(line: int) -> Span:
    return Span("k.ptx", line, 1, 4)


def step(number: int, thread: str, line: int, kind: StepKind, text: str, **more: Any) -> Step:
    return Step(thread=thread, instruction=text, kind=kind, span=span(line), number=number, **more)


def access(thread: str, line: int, text: str, kind: str, **more: Any) -> Access:
    return Access(
        thread=thread, instruction=text, span=span(line), object="data", bytes=(0, 4), access=kind, **more
    )  # fmt: skip


def last_of_three() -> Finding:
    """The last CTA of three reads what the first wrote: the counter has no fence in front of it."""
    store, load = "st.global.u32 [%rd1], %r1", "ld.global.u32 %r2, [%rd1]"
    trace = (
        step(2, WRITER, 10, StepKind.WRITE, store),
        step(3, WRITER, 11, StepKind.UPDATE, "atom.global.inc.u32 %r3, [%rd2], 2"),
        step(9, "cta(2, 0, 0).warp1[0]", 9, StepKind.BARRIER, "bar.sync 0", skipped=5),
        step(10, READER, 11, StepKind.UPDATE, "atom.global.inc.u32 %r3, [%rd2], 2", observes=(3, 9)),
        step(12, READER, 20, StepKind.READ, load, skipped=1),
    )
    ends = (access(WRITER, 10, store, "write"), access(READER, 20, load, "read"))
    return Finding(code="RACE001", kind="race", severity="error", said=("a race",), accesses=ends, trace=trace)


def drawn(finding: Finding) -> Execution:
    found = draw_timeline(finding, "last", "ptx-9.0")
    assert found is not None
    return found


def test_the_first_and_the_last_cta_have_a_lane_and_the_rest_is_folded() -> None:
    execution = drawn(last_of_three())
    assert [column.title for column in execution.columns] == [
        "CTA (0, 0, 0): warp0[0]",
        "others",
        "CTA (2, 0, 0)",
    ]
    assert [(b.name, b.column, b.lines[0]) for b in execution.boxes] == [
        ("2", 0, "line 10"),
        ("3", 0, "line 11"),
        ("4-8", 1, "5 steps"),
        ("9", 2, "warp1[0], line 9"),
        ("10", 2, "warp0[0], line 11"),
        ("11", 1, "1 step"),
        ("12", 2, "warp0[0], line 20"),
    ]
    assert [b.row for b in execution.boxes] == list(range(7))
    assert [b.name for b in execution.boxes if b.marked] == ["2", "12"]
    names = [b.name for b in execution.boxes]
    edges = [(names[e.source], names[e.target], e.kind) for e in execution.edges]
    assert edges == [
        ("2", "3", "po"),
        ("10", "12", "po"),
        ("3", "10", "observed"),
        ("2", "12", "race"),
    ]


def test_the_picture_is_the_recorded_one(promote: bool) -> None:
    path = GOLDEN / "last-of-three.svg"
    svg = draw(drawn(last_of_three()))
    if promote:
        path.parent.mkdir(exist_ok=True)
        path.write_text(svg, encoding="utf-8")
    assert svg == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("lanes", "marked"), [("1..31", 2), ("0, 4..7", 2), ("0, 6", 1), ("8..31", 1)])
def test_an_access_of_one_lane_is_marked_at_the_step_of_all_that_execute_as_one(lanes: str, marked: int) -> None:
    whole = last_of_three()
    group, lane = WRITER.replace("[0]", f"[{lanes}]"), WRITER.replace("[0]", "[5]")
    trace = tuple(replace(one, thread=group) if one.thread == WRITER else one for one in whole.trace)
    ends = (replace(whole.accesses[0], thread=lane), whole.accesses[1])
    found = drawn(replace(whole, trace=trace, accesses=ends))
    assert sum(box.marked for box in found.boxes) == marked
    assert [edge.kind for edge in found.edges].count("race") == marked - 1


def test_texts_do_not_overlap() -> None:
    layout = lay_out(drawn(last_of_three()))
    rects = [*layout.boxes, *(label.rect for label in layout.heads), *(label.rect for label in layout.caption)]
    assert not any(a.overlaps(b) for k, a in enumerate(rects) for b in rects[:k])


def test_threads_of_one_cta_have_a_lane_each() -> None:
    finding = last_of_three()
    execution = drawn(
        Finding(
            code="RACE001", kind="race", severity="error", said=("",), accesses=finding.accesses[1:],
            trace=finding.trace[2:],
        )
    )  # fmt: skip
    assert [column.title for column in execution.columns] == ["cta(2, 0, 0).warp1[0]", READER]


def found(kernel: str) -> Finding:
    folder = LAUNCHES / kernel
    launch = json.loads((folder / "launch.json").read_text(encoding="utf-8"))
    return check((folder / "twin1.ptx").read_text(encoding="utf-8"), launch).findings[0]


def test_two_accesses_are_drawn_where_no_execution_is_known() -> None:
    """Bytes of two CTAs that meet are found without following both."""
    finding = found("vector_add")
    assert not finding.trace
    execution = drawn(finding)
    assert [column.title for column in execution.columns] == ["CTA (0, 0, 0)", "CTA (1, 0, 0)"]
    assert [(b.name, b.kind, b.lines) for b in execution.boxes] == [
        ("a", "write", ("line 63", "writes vector_add_param_2[bytes 508..512]")),
        ("b", "write", ("line 63", "writes vector_add_param_2[bytes 508..512]")),
    ]
    assert [(e.kind, e.both) for e in execution.edges] == [("race", True)]
    assert "two accesses" in draw(execution)


def test_two_gpus_have_a_lane_each_and_the_flag_is_an_edge() -> None:
    """A fence of scope gpu: the flag arrives at the other GPU, and orders nothing."""
    finding = found("two_gpu_mailbox")
    execution = drawn(finding)
    assert [column.title for column in execution.columns if column.title != "others"] == [
        "GPU 0: warp0[0]",
        "GPU 1: warp0[0]",
    ]
    lines = [box.line for box in execution.boxes]
    edges = {(lines[e.source], lines[e.target], e.kind) for e in execution.edges if e.kind != "po"}
    flag = next(s.span.line for s in finding.trace if s.span and s.instruction.startswith("st.relaxed.sys"))
    wait = next(s.span.line for s in finding.trace if s.span and s.instruction.startswith("ld.acquire.sys"))
    first, second = (a.line for a in finding.accesses)
    assert edges == {(flag, wait, "observed"), (first, second, "race")}


@pytest.mark.parametrize("kind", ["deadlock", "undefined"])
def test_only_a_race_lacks_an_order(kind: str) -> None:
    finding = last_of_three()
    other = Finding(
        code="DEAD004", kind=kind, severity="error", said=("",), accesses=finding.accesses[1:], trace=finding.trace
    )
    assert "race" not in {e.kind for e in drawn(other).edges}


def test_the_words_of_a_picture_without_a_trace_are_those_of_its_boxes() -> None:
    finding = found("vector_add")
    _, (picture,) = draw_findings([finding], "vector_add", "ptx-9.0", 1)
    assert picture.caption == "RACE001: two accesses"
    assert picture.steps == (
        "a, CTA (0, 0, 0): line 63; writes vector_add_param_2[bytes 508..512]",
        "b, CTA (1, 0, 0): line 63; writes vector_add_param_2[bytes 508..512]",
        "race: a and b",
    )
