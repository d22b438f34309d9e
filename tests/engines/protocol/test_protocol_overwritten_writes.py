"""Writes that an atomic is not asked about, since they were overwritten before it, are refused by the model."""

from __future__ import annotations

import contextlib
from random import Random
from typing import Any

import pytest

from mcheck.base.errors import Unsupported
from mcheck.cat import load_model
from mcheck.engines.protocol import exploration
from mcheck.engines.protocol.operations import atomics
from mcheck.engines.protocol.passes import passes_without
from mcheck.frontend.litmus import parse
from tests.fuzz.programs import program

BARRIERS = """PTX two-barriers
{ .global .u32 count = 0, x = 0; }
block@cta 0..2, warp 0, lane 0 {
  .reg .b32 r;
  atom.acq_rel.gpu.global.add.u32 r, [count], 1;
  if (r == 1) { st.relaxed.gpu.global.u32 [x], 1; }
  await ld.acquire.gpu.global.u32 r, [count] >= 2;
  atom.acq_rel.gpu.global.add.u32 r, [count], 1;
  if (r == 3) { st.relaxed.gpu.global.u32 [x], 2; }
  await ld.acquire.gpu.global.u32 r, [count] >= 4;
  atom.acq_rel.gpu.global.add.u32 r, [count], 1;
  if (r == 5) { st.relaxed.gpu.global.u32 [x], 3; }
}
"""


def refused(text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many writes atomics would not have been asked about: the model refuses each."""
    first = -1
    count = 0

    def ask_about_all(*given: Any) -> int:
        nonlocal first
        first = find_latest_before(*given)
        return -1

    def may_follow(*given: Any) -> bool:
        nonlocal count
        place, found = given[4], bool(ask(*given))
        count += place < first
        assert not (found and place < first)
        return found

    def find(*given: Any) -> Any:
        nonlocal first
        first = -1
        return find_readable_writes(*given)

    find_latest_before, ask = atomics.find_latest_before, atomics._may_follow
    find_readable_writes = atomics._find_readable_writes
    with monkeypatch.context() as patch:
        patch.setattr(atomics, "find_latest_before", ask_about_all)
        patch.setattr(atomics, "_may_follow", may_follow)
        patch.setattr(atomics, "_find_readable_writes", find)
        search = exploration.Search(
            parse(text, "overwritten.litmus"), load_model("ptx-9.0"), "ptx", 2, 30, thorough=True, suggests_fixes=False,
            passes=passes_without(["unsplit-atomics"]),
        )  # fmt: skip
        with contextlib.suppress(Unsupported):
            search.run()
    return count


def test_overwritten_writes_of_barriers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(BARRIERS, monkeypatch) > 10


@pytest.mark.daily
@pytest.mark.parametrize("family", ["plain", "spinning", "counted", "meetings"])
def test_overwritten_writes_of_random_programs_are_refused(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(f"overwritten {family}")
    for _ in range(12):
        refused(program(random, (family,)), monkeypatch)
