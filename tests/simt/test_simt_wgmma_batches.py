"""Neighbouring wgmma as one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.modules import FOLDER
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.checking.run.single import load_model
from mcheck.frontend.ptx import launch_reader, reader
from mcheck.ir import ops
from mcheck.simt.trace_extraction import ClusterTrace, extract_traces
from mcheck.simt.traces.wgmma_batches import batch_wgmma, has_batches

TILE = FOLDER / "cuda" / "wgmma_tile.ptx"


def followed(text: str, path: Path = TILE) -> ClusterTrace:
    """The first way of a module of the corpus."""
    module = reader.parse_module(text, str(path))
    launch = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return next(extract_traces(module, launch_reader.build_launch(module, launch_reader.from_object(launch))))


def bytes_read(code: tuple[ops.Op, ...]) -> set[int]:
    """What the wgmma of a lane read."""
    return {
        at.value + k  # type: ignore[attr-defined]
        for op in code
        if isinstance(op, ops.Wgmma)
        for at, size in op.reads
        for k in range(size.value)  # type: ignore[attr-defined]
    }


@pytest.mark.daily(days=4, least=0)
def test_they_read_the_same() -> None:
    """All else stays, and in its place; a run of wgmma is one that reads what all of them read."""
    program = followed(TILE.read_text(encoding="utf-8")).program
    assert has_batches(program)
    short = batch_wgmma(program)
    assert not has_batches(short)
    for before, after in zip(program.threads, short.threads, strict=True):
        assert bytes_read(before.code) == bytes_read(after.code)
        rest = [op for op in before.code if not isinstance(op, ops.Wgmma)]
        assert [op for op in after.code if not isinstance(op, ops.Wgmma)] == rest
    assert short.threads[0].code[-1] is short.threads[1].code[-1]


@pytest.mark.daily(days=3, least=0)
def test_findings_name_the_line_of_the_one_that_races() -> None:
    """Where something is found the program without batches is asked."""
    text = TILE.read_text(encoding="utf-8").replace("wgmma.wait_group.sync.aligned 0;", "")
    module = reader.parse_module(text, str(TILE))
    launch = launch_reader.build_launch(
        module, launch_reader.from_object(json.loads(TILE.with_suffix(".json").read_text()))
    )
    model = load_model("ptx-9.0")
    question = Question(about=Completeness.FINDINGS)
    found = answer_launch(module, launch, model, question)
    program = followed(text).program
    plain = ask(program, model, question, "protocol")
    assert {f.code for f in found.findings} == {f.code for f in plain.findings}
    assert {a.span for f in found.findings for a in f.accesses} == {a.span for f in plain.findings for a in f.accesses}
    assert len(ask(batch_wgmma(program), model, replace(question, brief=True), "protocol").findings) <= len(
        plain.findings
    )
