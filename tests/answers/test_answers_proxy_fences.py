"""A proxy fence stands right before the hand-over: there it covers all accesses of an unrolled loop."""

from __future__ import annotations

import pytest

from benchmarks.fixes import try_fix
from benchmarks.modules import cases
from mcheck.findings.fix_words import text_of
from mcheck.findings.repair import apply_edits, make_edits
from mcheck.ptx import check

TWINS = {case.label: case for case in cases() if case.edits}
FENCE = "fence.proxy.async.shared::cta"

STORED_IN_ALL = """.version 8.6
.target sm_90
.address_size 64
.visible .entry stored(.param .u64 out)
{
  .reg .pred %p; .reg .b32 %t; .reg .b32 %a; .reg .b64 %o;
  .shared .align 16 .b8 tile[256];
  ld.param.u64 %o, [out];
  mov.u32 %t, %tid.x;
  mov.u32 %a, tile;
  mad.lo.u32 %a, %t, 4, %a;
  st.shared.u32 [%a], %t;
  st.shared.u32 [%a+128], %t;
  bar.sync 0;
  setp.ne.u32 %p, %t, 0;
  @%p bra DONE;
  mov.u32 %a, tile;
  cp.async.bulk.global.shared::cta.bulk_group [%o], [%a], 256;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
DONE:
  ret;
}
"""


def test_one_fence_before_the_barrier_covers_all_stores() -> None:
    launch = {"entry": "stored", "grid": 1, "block": 32, "params": {"out": {"buffer": 256}}}
    found = check(STORED_IN_ALL, launch)
    lines = STORED_IN_ALL.split("\n")
    first, *_ = found.findings
    line = next(k for k, text in enumerate(lines, 1) if "bar.sync" in text)
    assert text_of(first.fixes).startswith(f"Execute {FENCE} before line {line}, which hands the bytes over, in every")
    mended = apply_edits(lines, make_edits(first.fixes, lines))
    assert f"  {FENCE};\n  bar.sync 0;" in "\n".join(mended)
    assert check("\n".join(mended), launch).verdict == "proved"


@pytest.mark.daily
@pytest.mark.parametrize(
    "label",
    [
        "cuda/barrier_tx no-proxy-fence",
        "cuda/im2col_conv no-fence",
        "cuda/ring_bulk no-proxy-fence",
        "cuda/scheduled no-proxy-fence",
        "cuda/tensor_reduce no-proxy-fence",
        "cuda/tensor_tiles no-proxy-fence",
        "cuda/three_roles no-proxy-fence",
        "cuda/warp_rings no-proxy-fence",
        "cuda/wgmma_tile no-proxy-fence",
        "cuda/multicast fence-removed",
        "cute/scaled_sm90 no-fence",
        "gluon/hopper_sm90 epilogue-without-fence",
    ],
)
def test_the_fence_that_is_named_mends_the_twin(label: str) -> None:
    assert try_fix(TWINS[label], timeout=60).outcome == "mended"
