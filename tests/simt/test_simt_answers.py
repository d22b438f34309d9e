"""The modules of the corpus that are checked in a moment, and their twins: ``python -m benchmarks.modules`` has all."""

from __future__ import annotations

import pytest

from benchmarks.modules import Case, cases, check

QUICK = (
    "attention_sm100", "bulk_reduce", "bulk_store", "bulk_to_peer", "column_sums_sm90", "cub_reduce", "cub_scan",
    "dependent", "grid_sync", "layernorm", "leavers", "matmul_made_sm90", "matmul_split_sm80", "named_barriers",
    "pipeline_thread", "remote_write", "ring_bulk", "scan", "staged_copy", "streamk", "transpose",
)  # fmt: skip
LARGE = ("attention_sm100", "column_sums_sm90", "grid_sync")
"""Modules that take seconds."""


def case_of_a_day(case: Case) -> object:
    """Every day all modules, of the large ones one, and a twin of each kernel."""
    group = case.path.stem if case.edits else "large" if case.path.stem in LARGE else None
    return pytest.param(case, marks=pytest.mark.daily(one_of=group) if group else (), id=case.label)


CHOSEN = [case_of_a_day(case) for case in cases() if case.path.stem in QUICK]


@pytest.mark.parametrize("case", CHOSEN)
def test_modules_are_clean_and_their_twins_are_found_out(case: Case) -> None:
    checked = check(case, None)
    assert checked.ok, f"{checked.verdict}: {checked.found}, at a line of the edit: {checked.line}"
