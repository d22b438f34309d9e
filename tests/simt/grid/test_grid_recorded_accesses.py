"""No access of global memory is forgotten while a cluster is watched: what is not known is open, or an error."""

from __future__ import annotations

import pytest

from mcheck.base.budget import Limit
from mcheck.base.errors import InputError
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.module import Module
from mcheck.frontend.ptx.reader import parse_module
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.compiler import STEP_MAKERS
from mcheck.simt.grid.footprints import recorded_accesses
from mcheck.simt.grid.footprints.footprint import ANY
from mcheck.simt.grid.footprints.watched_execution import GridWatch
from mcheck.simt.trace_extraction import extract_traces

LAUNCH = {"entry": "k", "grid": 4, "block": 32, "params": {"0": {"buffer": 64}}}
"""Four clusters, so that the one that is executed is watched."""


def kernel(line: str) -> tuple[Module, Launch]:
    text = f""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  .shared .b64 bar;
  ld.param.u64 %rd1, [p];
  {line};
  ret;
}}
"""
    module = parse_module(text)
    return module, build_launch(module, from_object(LAUNCH))


@pytest.mark.parametrize("line", ["atom.global.gpu.add %r1, [%rd1], 1", "red.gpu.global.add [%rd1], 1"])
def test_an_access_without_a_type_is_an_error_of_the_input(line: str) -> None:
    module, launch = kernel(line)
    with pytest.raises(InputError, match="is missing its type"):
        list(extract_traces(module, launch, Limit(None)))


def test_what_is_executed_and_of_a_kind_that_nobody_has_thought_of_may_access_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module, launch = kernel("mbarrier.init.shared.b64 [bar], 1")

    def unplaced() -> bool:
        (way,) = extract_traces(module, launch, Limit(None))
        assert way.footprint is not None
        return any(form.buffer == ANY for form in way.footprint.beginnings)

    assert not unplaced()
    monkeypatch.setattr(
        recorded_accesses, "WITHOUT_GLOBAL_ACCESS", recorded_accesses.WITHOUT_GLOBAL_ACCESS - {Kind.MBARRIER}
    )
    assert unplaced()


def test_no_error_of_the_watch_is_taken_for_one_of_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise KeyError("a type that the watch does not know")

    monkeypatch.setattr(GridWatch, "_load", fails)
    module, launch = kernel("ld.global.u32 %r1, [%rd1]")
    with pytest.raises(KeyError):
        list(extract_traces(module, launch, Limit(None)))


def test_kinds_that_are_said_to_access_no_global_memory_are_executed() -> None:
    """Lanes at an instruction of a kind that is not executed give up: the set has none."""
    assert set(STEP_MAKERS) >= recorded_accesses.WITHOUT_GLOBAL_ACCESS
