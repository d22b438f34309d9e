"""The modules of the corpus that are checked in a moment, and their twins: ``python -m benchmarks.modules`` has all."""

from __future__ import annotations

import pytest

from benchmarks.modules import Case, cases, check

QUICK = (
    "attention_sm100", "bulk_reduce", "bulk_store", "bulk_to_peer", "column_sums_sm90", "cub_reduce", "cub_scan",
    "dependent", "grid_sync", "layernorm", "leavers", "matmul_made_sm90", "matmul_split_sm80", "named_barriers",
    "pipeline_thread", "remote_write", "ring_bulk", "scan", "staged_copy", "streamk", "transpose",
)  # fmt: skip
LARGE = (
    "attention_sm100", "bulk_reduce", "column_sums_sm90", "cub_scan", "grid_sync", "layernorm", "matmul_made_sm90",
    "matmul_split_sm80", "pipeline_thread", "staged_copy", "transpose",
)  # fmt: skip
"""Modules that take seconds, or whose twins do."""


def case_of_a_day(case: Case) -> object:
    """Every day all modules and a twin of each kernel, and of the large ones a module and a twin."""
    name, what = case.path.stem, "twin" if case.edits else "module"
    group = f"large {what}" if name in LARGE else name if case.edits else None
    return pytest.param(case, marks=pytest.mark.daily(one_of=group) if group else (), id=case.label)


CHOSEN = [case_of_a_day(case) for case in cases() if case.path.stem in QUICK]


@pytest.mark.parametrize("case", CHOSEN)
def test_modules_are_clean_and_their_twins_are_found_out(case: Case) -> None:
    checked = check(case, None)
    assert checked.ok, f"{checked.verdict}: {checked.found}, at a line of the edit: {checked.line}"
