"""Synchronisation that a proof needs, and that it does not."""

from pathlib import Path

import pytest

from mcheck.base.verdicts import Verdict
from mcheck.checking.check.command import check_case
from mcheck.checking.fences.candidates import apply_edits, find_edits
from mcheck.checking.fences.removal import find_removals
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.result import Result

KERNEL = Path("litmus/kernels/A05-same-thread-without-proxy-fence-fixed.litmus")


def check(text: str) -> Result:
    return check_case(Case(str(KERNEL), text=text), Settings(timeout=20), Options())


def test_the_only_proxy_fence_is_needed_and_a_second_one_is_not() -> None:
    text = KERNEL.read_text()
    fence = next(edit for edit in find_edits(text) if edit.instruction.startswith("fence.proxy"))
    once = find_removals(text, check)
    assert once is not None
    assert any(each.edit == fence and each.codes for each in once.needed)
    doubled = text[: fence.end] + " " + fence.instruction + text[fence.end :]
    twice = find_removals(doubled, check)
    assert twice is not None
    assert sum(each.edit.instruction == fence.instruction for each in twice.removable) == 2
    assert sum(edit.instruction == fence.instruction for edit in twice.together) == 1
    assert check(apply_edits(doubled, twice.together)).verdict == Verdict.PROVED


@pytest.mark.parametrize("hidden", ["// fence.sc.gpu;", "/* fence.sc.gpu; */"])
def test_comments_are_no_candidates(hidden: str) -> None:
    assert find_edits(hidden + "\n") == ()


def test_a_row_of_several_threads_is_no_candidate() -> None:
    assert find_edits(" fence.sc.gpu | fence.sc.gpu ;\n") == ()


def test_a_weaker_statement_keeps_its_guard_and_the_other_lines() -> None:
    text = "  @p fence.sc.sys;\n  @p ld.acquire.sys.u32 r0, [x];\n"
    assert [(edit.line, edit.replacement) for edit in find_edits(text)] == [
        (1, None),
        (1, "@p fence.acq_rel.sys;"),
        (1, "@p fence.sc.gpu;"),
        (2, "@p ld.relaxed.sys.u32 r0, [x];"),
        (2, "@p ld.acquire.gpu.u32 r0, [x];"),
    ]
    assert apply_edits(text, find_edits(text)[:1]) == "  \n  @p ld.acquire.sys.u32 r0, [x];\n"
