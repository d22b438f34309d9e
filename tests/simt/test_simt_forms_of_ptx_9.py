"""Modules with forms that PTX 9.3 to 9.5 add to copies, waits and fences, as NVIDIA's assembler takes them, and twins
with a bug.
"""

from __future__ import annotations

import pytest

from mcheck.checking.check.module_models import model_of_text, model_of_version
from mcheck.ptx import check
from tests.assembler import Assembler

HEAD = """\
.version 9.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 from, .param .u64 to)
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<6>;
  .shared .align 128 .b8 tile[128];
  .shared .align 128 .b8 other[128];
  .shared .align 8 .b64 full;
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [to];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %cluster_ctarank;
  setp.ne.u32 %p1, %r1, 0;
"""
DONE = "DONE:\n  ret;\n}\n"
INIT = "mbarrier.init.shared::cta.b64 [full], 1;"
EXPECT = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;"
COMPLETE = "mbarrier::complete_tx::bytes"
TO_BOTH = f"shared::cluster.global.{COMPLETE}.multicast::cluster.b128"
LOAD = f"cp.async.bulk.relaxed.gpu.shared::cta.global.{COMPLETE}.b128 [tile], [%rd1], 128, [full];"
STORE = "cp.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.b128 [%rd2], [tile], 128;"
COMMIT = "cp.async.bulk.commit_group;"
MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
LOOSELY = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;"
READ_HALF = "fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cluster;"
ACQUIRE_HALF = "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;"


def wait(parity: int = 0, form: str = "") -> str:
    """A loop that waits for a phase of the mbarrier."""
    return f"W{parity}: mbarrier.try_wait.parity{form}.shared::cta.b64 %p2, [full], {parity}; @!%p2 bra W{parity};"


def by_one(*body: str) -> str:
    """A kernel whose first thread alone does something."""
    return HEAD + "  @%p1 bra DONE;\n" + "".join(f"  {line}\n" for line in body) + DONE


def by_pair(*body: str) -> str:
    """A kernel of a cluster of two CTAs, where %p3 says that this is not the first thread of the first CTA."""
    first = ("setp.ne.u32 %p3, %r2, 0;", "or.pred %p3, %p3, %p1;")
    return HEAD + "".join(f"  {line}\n" for line in (*first, *body)) + DONE


REFILL = (INIT, EXPECT, LOAD, wait(), STORE, COMMIT, "WAIT", EXPECT, LOAD, wait(1))
MULTICAST = (
    "@!%p1 " + INIT, "@!%p1 " + EXPECT, "fence.mbarrier_init.release.cluster;", MEET,
    f"@!%p3 cp.async.bulk.relaxed.gpu.{TO_BOTH} [tile], [%rd1], 128, [full], 3;",
    "WAIT", "ld.shared.u32 %r3, [tile];", MEET,
)  # fmt: skip
TO_PEER = (
    "@!%p1 " + INIT, "@!%p1 " + EXPECT, "fence.mbarrier_init.release.cluster;",
    "mov.u32 %r4, tile; mov.u32 %r5, full; xor.b32 %r6, %r2, 1;", "mapa.shared::cluster.u32 %r4, %r4, %r6;",
    "mapa.shared::cluster.u32 %r5, %r5, %r6;", "st.shared.u32 [other], %r1;", "fence.proxy.async.shared::cta;", MEET,
    f"@!%p1 cp.async.bulk.relaxed.SCOPE.shared::cluster.shared::cta.{COMPLETE}.b128 [%r4], [other], 128, [%r5];",
    wait(), "MORE", "ld.shared.u32 %r3, [tile];", MEET,
)  # fmt: skip
READ_BY_PEER = (
    "@!%p3 " + INIT, "@!%p3 " + EXPECT, "fence.mbarrier_init.release.cluster;", MEET,
    "mov.u32 %r4, tile; mov.u32 %r5, 0;", "mapa.shared::cluster.u32 %r4, %r4, %r5;",
    "ld.shared::cluster.u32 %r3, [%r4];", "HALF", LOOSELY, "@%p3 bra LAST;", ACQUIRE_HALF,
    f"cp.async.bulk.shared::cluster.global.{COMPLETE} [tile], [%rd1], 128, [full];", wait(), f"LAST: {MEET}",
)  # fmt: skip
TO_PEER_STORE = (
    "@!%p1 " + INIT, "@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 4;",
    "fence.mbarrier_init.release.cluster;", MEET, "mov.u32 %r4, tile; mov.u32 %r5, full; xor.b32 %r6, %r2, 1;",
    "mapa.shared::cluster.u32 %r4, %r4, %r6;", "mapa.shared::cluster.u32 %r5, %r5, %r6;",
    f"@!%p1 st.async.weak.shared::cluster.{COMPLETE}.u32 [%r4], %r2, [%r5];", "WAIT", "ld.shared.u32 %r3, [tile];",
    "LATE", MEET,
)  # fmt: skip
TO_PEER_SUM = (
    "@!%p1 " + INIT, "@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 4;", "@!%p1 st.shared.u32 [tile], 1;",
    "fence.mbarrier_init.release.cluster;", MEET, "mov.u32 %r4, tile; mov.u32 %r5, full; xor.b32 %r6, %r2, 1;",
    "mapa.shared::cluster.u32 %r4, %r4, %r6;", "mapa.shared::cluster.u32 %r5, %r5, %r6;",
    f"@!%p1 red.async.relaxed.cluster.shared::cluster.{COMPLETE}.add.u32 [%r4], %r2, [%r5];", "WAIT",
    "ld.shared.u32 %r3, [tile];", "LATE", MEET,
)  # fmt: skip
FLAG = (
    "@!%p3 st.global.u32 [%rd1], 1;", "@!%p3 st.mmio.release.sys.global.u32 [%rd2], 1;", "setp.eq.u32 %p2, %r2, 0;",
    "or.pred %p2, %p2, %p1;", "@%p2 bra LAST;", "F: ld.mmio.acquire.sys.global.u32 %r3, [%rd2];",
    "setp.ne.u32 %p2, %r3, 1; @%p2 bra F;", "ld.global.u32 %r4, [%rd1];", f"LAST: {MEET}",
)  # fmt: skip

RIGHT = {
    "a strong load": by_one(INIT, EXPECT, LOAD, wait(), "ld.shared.u32 %r3, [tile];"),
    "a strong store": by_one(
        "st.shared.u32 [tile], 1;",
        "fence.proxy.async.shared::cta;",
        STORE,
        COMMIT,
        "cp.async.bulk.wait_group 0;",
        "ld.global.u32 %r3, [%rd2];",
    ),
    "a wait that the async proxy observes": by_one(*REFILL).replace(
        "WAIT", "cp.async.bulk.wait_group.sync_restrict::proxy::async 0;"
    ),
    "a wait for the reading": by_one(*REFILL).replace("WAIT", "cp.async.bulk.wait_group.read 0;"),
    "a multicast": by_pair(*MULTICAST).replace("WAIT", wait()),
    "a strong copy to a peer": by_pair(*TO_PEER).replace("SCOPE", "cluster").replace("MORE", ""),
    "the release half of reads": by_pair(*READ_BY_PEER).replace("HALF", READ_HALF),
    "a copy of which nothing is ignored": by_one(
        INIT,
        EXPECT,
        f"cp.async.bulk.shared::cta.global.{COMPLETE}.ignore_oob [tile], [%rd1], 128, 0, 0, [full];",
        wait(),
        "ld.shared.u32 %r3, [tile];",
    ),
    "a multicast by 16 bits": by_pair(*MULTICAST)
    .replace("WAIT", wait())
    .replace("relaxed.gpu.", "")
    .replace("cluster.b128", "cluster::16b"),
    "a store to a peer": by_pair(*TO_PEER_STORE).replace("WAIT", wait()).replace("LATE", ""),
    "a reduction at a peer": by_pair(*TO_PEER_SUM).replace("WAIT", wait()).replace("LATE", ""),
    "a flag of mmio": by_pair(*FLAG),
    "the conditional phase": by_one(
        INIT.replace("init", "init.layout::v0"),
        EXPECT,
        LOAD,
        wait(form=".phase_type::conditional"),
        "ld.shared.u32 %r3, [tile];",
    ),
}
WRONG = {
    "a strong load": (by_one(INIT, EXPECT, LOAD, "ld.shared.u32 %r3, [tile];", wait()), "RACE003"),
    "a strong store": (RIGHT["a strong store"].replace("fence.proxy.async.shared::cta;", ""), "RACE004"),
    "a wait that the async proxy observes": (
        RIGHT["a wait that the async proxy observes"].replace(DONE, f"  ld.global.u32 %r3, [%rd2];\n{DONE}"),
        "RACE003",
    ),
    "a wait for the reading": (by_one(*REFILL).replace("WAIT", ""), "RACE014"),
    "a multicast": (
        by_pair(*MULTICAST).replace("WAIT", "").replace(MEET + "\n" + DONE, wait() + MEET + DONE),
        "RACE003",
    ),
    "a strong copy to a peer": (
        RIGHT["a strong copy to a peer"].replace(wait(), "").replace(MEET + "\n" + DONE, f"{wait()}\n  {MEET}\n{DONE}"),
        "RACE003",
    ),
    "the release half of reads": (by_pair(*READ_BY_PEER).replace("HALF", ""), "RACE003"),
    "a copy of which nothing is ignored": (
        RIGHT["a copy of which nothing is ignored"].replace(wait(), "").replace(DONE, wait() + DONE),
        "RACE003",
    ),
    "a multicast by 16 bits": (
        RIGHT["a multicast by 16 bits"].replace(wait(), "").replace(MEET + "\n" + DONE, wait() + MEET + DONE),
        "RACE003",
    ),
    "a store to a peer": (by_pair(*TO_PEER_STORE).replace("WAIT", "").replace("LATE", wait()), "RACE003"),
    "a reduction at a peer": (by_pair(*TO_PEER_SUM).replace("WAIT", "").replace("LATE", wait()), "RACE003"),
    "a flag of mmio": (by_pair(*FLAG).replace("mmio.acquire", "mmio.relaxed"), "RACE001"),
    "the conditional phase": (RIGHT["the conditional phase"].replace("[full], 128;", "[full], 144;", 1), "DEAD003"),
}
BUFFERS = {"from": {"buffer": 128}, "to": {"buffer": 128}}


def launch(text: str) -> dict[str, object]:
    """A launch of one warp, or of a cluster of two."""
    pair = "barrier.cluster" in text
    if "mmio" in text:
        flag = {"from": {"buffer": 128}, "to": {"buffer": 128, "init": {"hex": "00000000"}}}
        return {"grid": [2], "block": [32], "cluster": [2], "params": flag}
    return {"grid": [2 if pair else 1], "block": [32], "cluster": [2 if pair else 1], "params": BUFFERS}


@pytest.mark.daily
@pytest.mark.parametrize("name", RIGHT)
def test_a_kernel_with_the_form_is_proved(name: str, assembler: Assembler) -> None:
    status, said = assembler.assemble(RIGHT[name], "-arch=sm_90a")
    assert status == 0, said
    found = check(RIGHT[name], launch(RIGHT[name]))
    assert (found.verdict, found.model, found.findings) == ("proved", "ptx-9.5", ())


@pytest.mark.daily
@pytest.mark.parametrize("name", WRONG)
def test_its_twin_with_a_bug_is_found(name: str, assembler: Assembler) -> None:
    text, code = WRONG[name]
    status, said = assembler.assemble(text, "-arch=sm_90a")
    assert status == 0, said
    assert code in {finding.code for finding in check(text, launch(text)).findings}


def test_a_wait_for_a_space_is_left_open() -> None:
    text = by_one(*REFILL).replace("WAIT", "cp.async.bulk.wait_group.sync_restrict::shared::cta 0;")
    found = check(text, launch(text))
    assert found.verdict == "unknown"
    assert "legal but not modelled" in found.reason


def test_the_version_chooses_the_model() -> None:
    text = RIGHT["a strong load"]
    versions = {"8.0": "ptx-9.0", "9.2": "ptx-9.0", "9.3": "ptx-9.3", "9.4": "ptx-9.5", "9.5": "ptx-9.5"}
    for version, model in versions.items():
        assert model_of_text(text.replace("9.5", version, 1)) == model
    assert model_of_version((10, 0)) == "ptx-9.5"
    assert model_of_text("// no version\n") == "ptx-9.0"
    assert check(text, launch(text), model="ptx-9.3").model == "ptx-9.3"
