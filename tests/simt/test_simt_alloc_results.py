"""The word that tcgen05.alloc writes needs no proxy fence, until another instruction overwrites it."""

from __future__ import annotations

import numpy as np
import pytest

from mcheck.ptx import check
from mcheck.simt.execution.tensor_memory import TensorMemory

LOAD = "ld.shared.b32 %r4, [base+20];"
STORE_AGAIN = LOAD + " bar.sync 0; st.shared.b32 [base+20], %r4;"
WAIT = "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0; @!%p2 bra WAIT;"
EXPECT = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], {};"


def module(*body: str) -> str:
    """A module that allocates, does something to the word, and frees."""
    lines = "\n".join(f"  {line}" for line in body)
    return f"""\
.version 8.8
.target sm_100a
.address_size 64
.visible .global .align 16 .b8 data[1024];
.visible .entry k()
.reqntid 32, 1, 1
{{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .f32 %f<9>;
  .reg .b64 %rd<4>;
  .shared .align 128 .b8 base[1024];
  .shared .align 8 .b64 full;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  mov.u32 %r3, base;
  mov.u64 %rd1, data;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base+20], 32;
  @%p1 bra READY;
  mbarrier.init.shared::cta.b64 [full], 1;
READY:
  fence.proxy.async;
  bar.sync 0;
  ld.shared.b32 %r2, [base+20];
  bar.sync 0;
{lines}
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 32;
  ret;
}}
"""


def by_one(body: str) -> str:
    """Instructions of the first lane."""
    return f"@%p1 bra WRITTEN;\n  {body}\nWRITTEN:\n  bar.sync 0;"


ROW = "shl.b32 %r5, %r1, 4; add.u32 %r5, %r5, %r3;"
FLOATS = "{%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}"
OVERWRITES = {
    "st": (by_one("st.shared.b32 [base+20], %r1;"), LOAD),
    "st of a part": (by_one("st.shared.b8 [base+23], %r1;"), LOAD),
    "st from before": (by_one("st.shared.v4.b32 [base+16], {%r1, %r1, %r1, %r1};"), LOAD),
    "st.bulk": (by_one("st.bulk.weak.shared::cta [base], 64, 0;"), LOAD),
    "red": (by_one("red.shared.add.u32 [base+20], 1;"), LOAD),
    "atom": (by_one("atom.shared.exch.b32 %r5, [base+20], %r1;"), LOAD),
    "cp.async": (by_one("cp.async.cg.shared.global [base+16], [%rd1], 16; cp.async.wait_all;"), LOAD),
    "stmatrix": (f"{ROW} stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {{%r1}};\n  bar.sync 0;", LOAD),
    "wmma.store": (f"wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%r3], {FLOATS};\n  bar.sync 0;", LOAD),
    "tensormap.replace": (
        by_one("add.u32 %r3, %r3, 0; tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r3], 1;"),
        LOAD,
    ),
    "st.async": (
        by_one(
            EXPECT.format(4)
            + " st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [base+20], %r1, [full];"
        )
        + WAIT,
        STORE_AGAIN,
    ),
    "cp.async.bulk": (
        by_one(
            EXPECT.format(16)
            + " cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [base+16], [%rd1], 16, [full];"
        )
        + WAIT,
        STORE_AGAIN,
    ),
    "try_cancel": (
        by_one(
            EXPECT.format(16)
            + " clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [base+16], [full];"
        )
        + WAIT,
        STORE_AGAIN,
    ),
}  # fmt: skip
"""By what writes there: how, and what comes behind."""


@pytest.mark.daily
@pytest.mark.parametrize(("write", "then"), OVERWRITES.values(), ids=OVERWRITES.keys())
def test_what_overwrites_the_word_is_read_as_anything_else(write: str, then: str) -> None:
    ctas = 2 if "st.async" in write else 1  # which is for clusters
    text = module(write, then).replace(".reqntid", f".reqnctapercluster {ctas}\n.reqntid")
    found = check(text, {"grid": ctas})
    assert found.problem is None
    assert [(f.code, f.message) for f in found.findings] == []


def test_a_word_beside_it_leaves_it_the_result() -> None:
    """A generic store to the word behind a load of another proxy would need a fence: so the load is told apart."""
    for place in (0, 4, 12, 16):
        memory = TensorMemory()
        memory.record_result(np.array([64 + place], np.uint64))
        memory.record_stores(np.array([64 + 4], np.uint64), 12)
        assert memory.holds_results(np.array([64 + place], np.uint64)) is (place in (0, 16))
