"""Races between CTAs that announce what they have done: the fix names the line at which the order is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcheck.ptx import check

LAUNCHES = Path(__file__).parent.parent / "simt" / "launch"


def launched(twin: str) -> tuple[str, dict[str, Any]]:
    """A module and its launch."""
    path = LAUNCHES / f"{twin}.ptx"
    return path.read_text(encoding="utf-8"), json.loads((path.parent / "launch.json").read_text(encoding="utf-8"))


@pytest.mark.daily(least=0)
@pytest.mark.parametrize(
    ("twin", "fix", "line", "added"),
    [
        ("last_block/twin3", "Execute bar.sync 0 after line 49, in every thread of the CTA", 49, "bar.sync 0;"),
        ("split_k_tickets/twin2", "Execute bar.sync 0 after line 86, in every thread of the CTA", 86, "bar.sync 0;"),
        ("two_gpu_mailbox/twin2", "Execute bar.sync 0 after line 35, in every thread of the CTA", 35, "bar.sync 0;"),
        ("two_gpu_flag_reuse/twin2", "Execute bar.sync 0 after line 152, in every thread", 152, "bar.sync 0;"),
        ("last_block_volatile/twin2", "Execute fence.acq_rel.gpu after line 108", 108, "fence.acq_rel.gpu;"),
        ("split_k_tickets/twin1", "Execute fence.acq_rel.gpu before line 97", 96, "fence.acq_rel.gpu;"),
    ],
)
def test_the_fix_is_one(twin: str, fix: str, line: int, added: str) -> None:
    """With the instruction behind the line the module is proved."""
    text, launch = launched(twin)
    found = check(text, launch, timeout=60)
    assert any(f.missing.startswith(fix) for f in found.findings), [f.missing for f in found.findings]
    lines = text.split("\n")
    lines.insert(line, added)
    assert check("\n".join(lines), launch, timeout=60).verdict == "proved"


@pytest.mark.daily(days=6, least=0)
def test_a_fence_that_is_there_is_not_asked_for() -> None:
    """It stands right behind the write; both races of the kernel lack the other one."""
    found = check(*launched("last_block_volatile/twin2"), timeout=60).findings
    assert len(found) == 2
    assert not any("before line" in f.missing for f in found)


@pytest.mark.daily(days=6, least=0)
def test_the_scope_is_one() -> None:
    text, launch = launched("split_k_tickets/twin3")
    fixes = [f.missing for f in check(text, launch, timeout=60).findings]
    assert any(fix.startswith("Give scope .gpu (.release.gpu) at line 97.") for fix in fixes), fixes
    assert check(text.replace("st.release.cta", "st.release.gpu"), launch, timeout=60).verdict == "proved"


@pytest.mark.daily(least=0)
@pytest.mark.parametrize(
    ("twin", "fix"),
    [
        ("two_gpu_push_count/twin3", "writes at line 49, after line 42"),
        ("two_gpu_barrier/twin2", "writes at line 91, after line 74"),
        ("producer_consumer/twin1", "Let line 99 come after line 106, behind a bar.sync"),
    ],
)
def test_an_announcement_that_comes_too_early_is_named(twin: str, fix: str) -> None:
    found = check(*launched(twin), timeout=60)
    assert any(fix in f.missing for f in found.findings), [f.missing for f in found.findings]


@pytest.mark.daily(least=0)
@pytest.mark.parametrize(
    ("twin", "fix"),
    [
        ("histogram_counter/twin2", "Correct the number with which the result at line"),
        ("grid_barrier/twin1", "Correct the number with which the result at line"),
    ],
)
def test_a_wrong_count_is_named(twin: str, fix: str) -> None:
    found = check(*launched(twin), timeout=60)
    assert any(fix in f.missing and "has counted itself" in f.missing for f in found.findings), [
        f.missing for f in found.findings
    ]
