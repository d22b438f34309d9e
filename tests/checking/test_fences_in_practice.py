"""What ``docs/fences-in-practice.md`` says of programs: each edit, checked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcheck.base.verdicts import Verdict
from mcheck.checking.check.command import check_case
from mcheck.checking.run.case import Case, Options, Settings

CUDA, TRITON, LITMUS = Path("tests/simt/corpus/cuda"), Path("tests/simt/corpus/triton"), Path("litmus/kernels")
INIT = r"fence\.mbarrier_init\.release\.cluster;"
EXPECT = (r"(mbarrier\.arrive\.expect_tx)(?:\.release\.cta)?\.shared", r"\1.relaxed.cta.shared")
LAST = (r"(?s)(barrier\.cluster\.arrive)(?:\.release)?;(?!.*barrier\.cluster\.arrive)", r"\1.relaxed;")

MAY = (
    (CUDA / "bulk_to_peer.ptx", INIT, ""),
    (CUDA / "multicast.ptx", INIT, ""),
    (CUDA / "remote_write.ptx", INIT, ""),
    (LITMUS / "B08-multicast-refill-with-cta-fence-fixed.litmus", INIT, ""),
    (CUDA / "im2col_conv.ptx", INIT, ""),
    (CUDA / "barrier_tx.ptx", r"(?s)\A(.*?)fence\.proxy\.async\.shared::cta;", r"\1"),
    *((CUDA / f"{name}.ptx", *EXPECT) for name in ("barrier_tx", "bulk_to_peer", "multicast", "im2col_conv")),
    (TRITON / "matmul_descriptors_sm90.ptx", *EXPECT),
    (CUDA / "multicast.ptx", r"(?s)(?<=expect_tx)(.*?acquire)\.cluster", r"\1.cta"),
    (CUDA / "bulk_to_peer.ptx", r"(acquire)\.cluster(\.shared::cta)", r"\1.cta\2"),
    (CUDA / "multicast.ptx", r"fence\.proxy\.async\.shared::cluster", "fence.proxy.async.shared::cta"),
    *((CUDA / f"{name}.ptx", *LAST) for name in ("bulk_to_peer", "multicast", "remote_write")),
    (CUDA / "bulk_store.ptx", r"wait_group 0", "wait_group.read 0"),
    (TRITON / "matmul_descriptors_sm90.ptx", r"cp\.async\.bulk\.wait_group", "cp.async.bulk.wait_group.read"),
    (CUDA / "flag_chain.ptx", r"(acquire|release)\.gpu", r"\1.cluster"),
)
MUST = (
    (CUDA / "multicast.ptx", r"(?s)barrier\.cluster\.wait\.acquire;(?!.*barrier\.cluster)", "", "UB502"),
    (CUDA / "bulk_to_peer.ptx", r"(?s)barrier\.cluster\.wait;(?!.*barrier\.cluster)", "", "UB501"),
    (CUDA / "bulk_store.ptx", r"cp\.async\.bulk\.wait_group 0;", "", "UB501"),
    (CUDA / "flag_chain.ptx", r"ld\.acquire", "ld.relaxed", "RACE001"),
)  # fmt: skip


def edited(path: Path, pattern: str, replacement: str) -> tuple[Verdict, set[str]]:
    text, count = re.subn(pattern, replacement, path.read_text(encoding="utf-8"))
    assert count
    result = check_case(Case(str(path), text=text), Settings(timeout=100, processor_time=True), Options())
    return result.verdict, {finding.code for finding in result.findings}


@pytest.mark.slow
@pytest.mark.parametrize(("path", "pattern", "replacement"), MAY)
def test_what_may_go_leaves_the_program_proved(path: Path, pattern: str, replacement: str) -> None:
    assert edited(path, pattern, replacement)[0] is Verdict.PROVED


@pytest.mark.slow
@pytest.mark.parametrize(("path", "pattern", "replacement", "code"), MUST)
def test_what_is_needed_shows_in_a_finding(path: Path, pattern: str, replacement: str, code: str) -> None:
    verdict, codes = edited(path, pattern, replacement)
    assert verdict is Verdict.FINDING
    assert code in codes
