"""A fix stands where it mends all races of its cause: barriers, waits, fences, memory orders and scopes."""

from __future__ import annotations

import pytest

from benchmarks.fixes import names_what_is_left_out, try_fix
from benchmarks.modules import Case, cases
from mcheck.cat import load_model
from mcheck.engines.protocol.findings_answer import answer
from mcheck.findings.fix_words import text_of
from mcheck.frontend.litmus import parse

TWINS = {case.label: case for case in cases() if case.edits}
MODEL = load_model("ptx-9.0")


def told(text: str) -> list[str]:
    """The fixes of the errors of a sketch."""
    found = answer(parse(text, "places.litmus"), MODEL).findings
    return [text_of(f.fixes) for f in found if f.severity == "error"]


@pytest.mark.daily
@pytest.mark.parametrize(
    "label",
    [
        "cuda/barrier_tx no-barrier-before-refill",
        "cuda/bulk_store no-proxy-fence",
        "cuda/cub_scan warp-loads-what-is-not-stored",
        "cuda/halo_cluster no-barrier-after-the-read",
        "cuda/peer_credits no-fences",
        "cuda/softmax_rows sums-not-loaded-yet",
        "cuda/spinlock given-back-relaxed",
        "cuda/st_async wait-acquires-nothing",
        "cuda/staged_copy no-barrier-before-the-refill",
        "cuda/staged_result the-result-too-early",
        "cuda/tensor_tiles source-still-read",
        "cuda/timed_waits early-release",
        "cuda/warp_rings no-warp-barrier",
        "gluon/ring_sm90 no-barrier-before-the-release",
        "tilelang/row_sums_sm80 no-barrier-after-the-write",
    ],
)
def test_the_edit_mends_the_twin(label: str) -> None:
    assert try_fix(TWINS[label], timeout=60).outcome == "mended"


FLAG = """PTX flag
{{ .global .u32 x, f; }}
A@cluster 0, cta 0 {{ st.global.u32 [x], 1; st.{give}.global.u32 [f], 1; }}
B@cluster 0, cta 1 {{ await ld.{take}.global.u32 r0, [f] == 1; ld.global.u32 r1, [x]; }}
"""


def test_a_fence_has_the_scope_that_both_ends_name() -> None:
    """The CTAs of a finding are in one cluster; those that the flag is for need not be."""
    (fix,) = told(FLAG.format(give="relaxed.gpu", take="acquire.gpu"))
    assert fix.startswith("Execute fence.acq_rel.gpu before line 3, or make the st of line 3 .release.gpu")
    (fix,) = told(FLAG.format(give="relaxed.cluster", take="acquire.gpu"))
    assert "fence.acq_rel.cluster" in fix


def test_a_scope_that_is_too_narrow_becomes_that_of_the_other_end() -> None:
    fixes = told(FLAG.format(give="release.cta", take="acquire.gpu"))
    assert any(fix.startswith("Give scope .gpu (.release.gpu) at line 3.") for fix in fixes)


RING = """PTX ring
{ .shared .align 16 .b8 buf[256]; .global .align 16 .b8 src[1024]; .shared .b64 full; }
P@cta 0, warp 0..2, lane 0 {
  if (%warpid == 0) { mbarrier.init.shared::cta.b64 [full], 1; }
  bar.sync 0;
  for k in 0..2 {
    if (%warpid == 0) {
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
      cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [src + 16*k], 16, [full];
    }
    await mbarrier.try_wait.parity.shared::cta.b64 _, [full], k;
    ld.shared.u32 r0, [buf];
    fence.proxy.async;
  }
}
"""


def test_where_all_threads_come_by_a_barrier_stands_before_the_refill() -> None:
    """Also where they wait for mbarriers: there is none that gives the bytes back."""
    assert "Execute bar.sync 0 after line 13, in every thread of the CTA." in told(RING)


def test_the_measure_asks_for_the_instruction_and_its_place() -> None:
    twin: Case = TWINS["cuda/staged_result the-result-too-early"]
    assert names_what_is_left_out(twin, "Execute bar.sync 0 after line 132.")
    assert not names_what_is_left_out(twin, "Execute bar.sync 0 after line 174.")
    assert not names_what_is_left_out(twin, "Execute fence.proxy.async after line 132.")
    assert names_what_is_left_out(TWINS["cuda/spinlock taken-relaxed"], "anything") is None
