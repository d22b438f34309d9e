"""Races between CTAs that announce what they have done: the fix names the line at which the order is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcheck.ptx import check

LAUNCHES = Path(__file__).parent.parent / "simt" / "launch"


@pytest.mark.daily(days=4)
@pytest.mark.parametrize(
    ("twin", "fix", "line", "added"),
    [
        ("last_block/twin3", "Execute bar.sync 0 after line 49, in every thread of the CTA", 49, "bar.sync 0;"),
        ("split_k_tickets/twin2", "Execute bar.sync 0 after line 86, in every thread of the CTA", 86, "bar.sync 0;"),
        ("two_gpu_mailbox/twin2", "Execute bar.sync 0 after line 35, in every thread of the CTA", 35, "bar.sync 0;"),
        ("two_gpu_flag_reuse/twin2", "Execute bar.sync 0 after line 152, in every thread", 152, "bar.sync 0;"),
        ("split_k_tickets/twin1", "Execute fence.acq_rel.gpu before line 97", 96, "fence.acq_rel.gpu;"),
        ("split_k_tickets/twin3", "Give scope .gpu (.release.gpu) at line 97.", 96, "fence.acq_rel.gpu;"),
    ],
)
def test_the_fix_is_one(twin: str, fix: str, line: int, added: str) -> None:
    """With the instruction behind the line the module is proved."""
    path = LAUNCHES / f"{twin}.ptx"
    text = path.read_text(encoding="utf-8")
    launch = json.loads((path.parent / "launch.json").read_text(encoding="utf-8"))
    found = check(text, launch, timeout=60)
    assert any(f.missing.startswith(fix) for f in found.findings), [f.missing for f in found.findings]
    lines = text.split("\n")
    lines.insert(line, added)
    mended = "\n".join(lines)
    if fix.startswith("Give scope"):
        mended = text.replace("st.release.cta", "st.release.gpu")
    assert check(mended, launch, timeout=60).verdict == "proved"


@pytest.mark.daily(days=4)
@pytest.mark.parametrize(
    ("twin", "fix"),
    [
        ("two_gpu_push_count/twin3", "writes at line 49, after line 42"),
        ("two_gpu_barrier/twin2", "writes at line 91, after line 74"),
        ("producer_consumer/twin1", "Let line 99 come after line 106, behind a bar.sync"),
    ],
)
def test_an_announcement_that_comes_too_early_is_named(twin: str, fix: str) -> None:
    path = LAUNCHES / f"{twin}.ptx"
    launch = json.loads((path.parent / "launch.json").read_text(encoding="utf-8"))
    found = check(path.read_text(encoding="utf-8"), launch, timeout=60)
    assert any(fix in f.missing for f in found.findings), [f.missing for f in found.findings]
