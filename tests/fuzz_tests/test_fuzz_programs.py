"""The generator of random programs: legal, reproducible, and about everything that the models speak of."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from mcheck.cat import load_model
from mcheck.engines.explicit.engine import answer
from mcheck.frontend.litmus import parse
from tests.fuzz.draft import read
from tests.fuzz.programs import ASKED_FOR, FAMILIES, draft, program

PER_FAMILY = 250

SPOKEN_OF = {
    "plain": (
        "atom.", "red.", "cas.b32", "fence.sc", "fence.acq_rel", "volatile", ".u16", ".v2", ".u64", "bra ", "await ld",
        "if (", "mbarrier.test_wait", "bar.warp.sync", "cluster 0", "st.relaxed.cta", "ld.acquire.sys",
    ),
    "proxies": ("fence.proxy.alias", "fence.proxy.surface", "sust", "tld"),
    "barriers": ("bar.sync 1, 64", "bar.arrive", "bar.red.popc", "barrier.cta.sync", "bar.warp.sync"),
    "mbarrier": (
        "expect_tx.relaxed", "complete_tx.relaxed", "arrive.expect_tx", "arrive_drop", "noComplete", "pending_count",
        "inval", "test_wait.parity", "try_wait.parity", "try_wait.shared", ".release.cluster", ".relaxed.cta", "@%p",
        "@!%p", "], 2;",
    ),
    "phases": ("arrive_drop", "try_wait.shared", "k % 2", "else"),
    "groups": (
        "cp.async.ca", "cp.async.commit_group", "wait_group 1", "wait_all", "mbarrier.arrive.noinc",
        "cp.async.mbarrier.arrive.shared", "fence.proxy.async",
    ),
    "bulk": (
        "cp.async.bulk.shared::cta.global", "cp.async.bulk.shared::cluster.global", "cp.async.bulk.global.shared::cta",
        "cp.reduce.async.bulk.global", "cp.async.bulk.tensor.1d.shared::cta", "cp.async.bulk.tensor.1d.global",
        "cp.reduce.async.bulk.tensor", "wait_group.read", "bulk.commit_group", "fence.proxy.async.shared::cta",
        "fence.proxy.async.global",
    ),
    "strong": (
        "relaxed.cta.global", "relaxed.gpu.shared::cta", ".b128 [f]", "cp.reduce.async.bulk", "fence.acq_rel.gpu",
        "fence.acquire.gpu", "wait_group.read", "sync_restrict::proxy::async", "if (r0 == 1)", "ld.relaxed.gpu",
    ),
    "cluster": (
        "st.async", "red.async", ".v2.u32", "multicast::cluster", "shared::cluster.shared::cta",
        "cp.reduce.async.bulk.shared::cluster", "fence.mbarrier_init", "arrive.relaxed", "aligned",
        "shared::cluster.b64", "async::generic.release", "async::generic.acquire", "sync_restrict::shared::cta.cluster",
    ),
    "tensormap": (
        "tensormap.replace", "tensormap.cp_fenceproxy", "tensormap::generic.release", "tensormap::generic.acquire",
    ),
    "wgmma": ("wgmma.fence", "wgmma.mma_async", "wgmma.commit_group", "wgmma.wait_group", "warp 4..8"),
    "spinning": (
        "@%p0 bra again", "@%p9 bra out", "for i in 0..2", "or.pred", "and.pred", "@%p8 ld.global", "[z] == 1", "red.",
        "ld.global.u32 r0, [d]", "ld.relaxed", "ld.acquire.cta", "fence.acq_rel",
    ),
    "counted": (
        "bar.sync 1;", "bar.sync 1, 64;", "bar.sync 1, 96;", "bar.arrive 1, 64;", "barrier.sync",
        "bar.red.popc.u32 r0, 1, ", "bar.sync 2", "exit;", "st.shared", "ld.global",
    ),
    "lives": (
        "mbarrier.init", "mbarrier.inval", "arrive.release.cta", "expect_tx", "complete_tx", "await ld.acquire",
        "st.relaxed", "barrier.cluster.wait", "bar.sync 0", "cp.async.bulk", "[b1", "@0]", "], 2;",
    ),
    "meetings": (
        "bar.sync 0;", "bar.sync 0, 64;", "barrier.sync", "bar.arrive 1, 32;", "bar.red.popc", "bar.warp.sync 3",
        "barrier.cluster.arrive.relaxed", "barrier.cluster.wait", "exit;", "lane 1 {", "cta 1, ", "else",
        "await ld.acquire", "fence.sc",
    ),
    "collectives": (
        "vote.sync.ballot", "vote.sync.uni", "shfl.sync.idx", "shfl.sync.up", "match.any", "match.all", "elect.sync",
        "bar.warp.sync 3", "exit;", "lane 2 {", "warp 1", "else", "await ld.acquire", "@%p",
    ),
    "unplanned": (
        "mbarrier.init", "noComplete", "arrive_drop", "arrive.expect_tx", "complete_tx", "arrive.noinc.shared",
        "cp.async.bulk", "test_wait.parity", "try_wait.shared", "inval", "[b2]", "], 2;", "barrier.sync 0;", "@%p",
    ),
    "polled": (
        "await mbarrier", "test_wait.parity.relaxed", "vote.sync", "shfl.sync", "bar.warp.sync", "if (%laneid == 0)",
        "cp.async.bulk", "cp.async.wait_group 0", "ld.volatile", "atom.", "red.", "bra L", "lane 0..2",
    ),
    "overlaps": (
        "st.bulk", "cp.async.ca", "cp.async.bulk", "cp.reduce.async.bulk", ".b64", ".u8", ".u16", ".u64", ".v4",
        "await ld.relaxed", "volatile", "bar.sync 1, 96",
    ),
}  # fmt: skip
"""What the programs of a family have to contain, some of them."""


@pytest.mark.daily
@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_speaks_of_its_subject(family: str) -> None:
    texts = [program(Random(f"spoken:{k}"), [family]) for k in range(PER_FAMILY)]
    for text in texts:
        parse(text, "random.litmus")
    everything = "\n".join(texts)
    assert [word for word in SPOKEN_OF[family] if word not in everything] == []


def test_the_same_source_gives_the_same_program() -> None:
    for k in range(50):
        assert program(Random(f"1:{k}")) == program(Random(f"1:{k}"))
    assert len({program(Random(f"1:{k}")) for k in range(50)}) > 45


@pytest.mark.daily(days=4, least=0)
def test_programs_are_nearly_right(all_tests: bool) -> None:
    """Neither nearly all racy nor nearly all clean, and quick."""
    clean = wrong = 0
    number = 150 if all_tests else 60
    for k in range(number):
        test = parse(program(Random(f"right:{k}")), "random.litmus")
        given = answer(test, load_model(test.model or "ptx-9.0"), findings=True, timeout=5)
        if given.complete:
            grave = any(f.severity == "error" for f in given.findings)
            clean, wrong = clean + (not grave), wrong + grave
    assert clean + wrong > 0.867 * number
    assert clean > 0.267 * number
    assert wrong > 0.267 * number


def test_a_text_is_read_back() -> None:
    for k in range(100):
        made = draft(Random(f"text:{k}"))
        assert read(made.text()) == made


@cache
def usual_families() -> frozenset[str]:
    """Those of programs for which nobody asks for a family."""
    return frozenset(draft(Random(f"usual:{k}")).name for k in range(PER_FAMILY))


@pytest.mark.daily
@pytest.mark.parametrize("family", ASKED_FOR)
def test_what_nobody_asked_for_is_in_no_other_count(family: str) -> None:
    """Item k of a seed is what it was before there was the family."""
    assert family not in usual_families()
    assert all(draft(Random(f"asked:{k}"), [family]).name == family for k in range(PER_FAMILY))
