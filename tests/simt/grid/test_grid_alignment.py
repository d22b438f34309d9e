"""Addresses that are aligned, and sizes that are allowed, in the executed cluster and in no other one."""

from __future__ import annotations

import pytest

from mcheck import ptx
from mcheck.base.verdicts import Verdict

KERNEL = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
.reqntid 1, 1, 1
{{
.reg .pred %p;
.reg .b32 %r<8>;
.reg .b64 %a<8>;
.shared .align 128 .b8 sh[1024];
.shared .align 8 .b64 full;
ld.param.u64 %a1, [out];
mov.u32 %r1, %ctaid.x;
mul.wide.u32 %a2, %r1, {step};
add.u64 %a3, %a1, %a2;
mul.lo.u32 %r2, %r1, {step};
mov.u32 %r3, sh;
add.u32 %r3, %r3, %r2;
setp.eq.u32 %p, %r1, 3;
selp.b32 %r4, {step}, 16, %p;
{body}
ret;
}}
"""
INIT = "mbarrier.init.shared.b64 [full], 1;\n"
EXPECT = "mbarrier.arrive.expect_tx.shared.b64 _, [full], 16;\n"
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p, [full], 0;\n@!%p bra W;"
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sh], "
GROUP = "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"
CASES = {
    "a load": ("ld.global.u32 %r5, [%a3];", 6, "UB102"),
    "a store": ("st.global.v2.u32 [%a3], {%r1, %r1};", 12, "UB102"),
    "a store to shared memory": ("st.shared.u32 [%r3], 1;", 6, "UB102"),
    "a reduction": ("red.relaxed.gpu.global.add.u32 [%a3], 1;", 6, "UB102"),
    "a bulk prefetch": ("cp.async.bulk.prefetch.L2.global [%a3], 64;", 4, "UB102"),
    "a bulk prefetch of nothing": ("cp.async.bulk.prefetch.L2.global [%a3], 0;", 8, "UB102"),
    "the size of a bulk prefetch": ("cp.async.bulk.prefetch.L2.global [%a1], %r2;", 4, "UB101"),
    "the size of a bulk prefetch in one cluster": ("cp.async.bulk.prefetch.L2.global [%a1], %r4;", 4, "UB101"),
    "a bulk copy": (f"{INIT}{EXPECT}{BULK}[%a3], 16, [full];\n{WAIT}", 4, "UB102"),
    "a bulk copy of nothing": (f"{INIT}{BULK}[%a3], 0, [full];", 4, "UB102"),
    "the size of a bulk copy": (f"{INIT}{BULK}[%a1], %r2, [full];", 4, "UB101"),
    "a bulk store of nothing": (f"cp.async.bulk.global.shared::cta.bulk_group [%a3], [sh], 0;\n{GROUP}", 8, "UB102"),
    "a bulk reduction of nothing": (
        f"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%a3], [sh], 0;\n{GROUP}", 8, "UB102",
    ),
    "cp.async of zeros": ("cp.async.cg.shared.global [sh], [%a3], 16, 0;\ncp.async.wait_all;", 4, "UB102"),
}  # fmt: skip


@pytest.mark.parametrize("clusters", [5, 40])
@pytest.mark.parametrize(("body", "step", "code"), CASES.values(), ids=CASES)
def test_what_is_aligned_in_one_cluster_alone_is_found(body: str, step: int, code: str, clusters: int) -> None:
    found = ptx.check(KERNEL.format(body=body, step=step), _launch(clusters))
    assert found.verdict is Verdict.FINDING
    assert code in {f.code for f in found.findings}


def test_prefetches_that_stay_aligned_are_proved_wherever_they_are() -> None:
    body = "cp.async.bulk.prefetch.L2.global [%a3], 64;"
    assert ptx.check(KERNEL.format(body=body, step=1 << 16), _launch(40)).verdict is Verdict.PROVED


def _launch(clusters: int) -> dict[str, object]:
    return {"grid": [clusters], "block": [1], "params": {"out": {"buffer": 1 << 16}}}
