"""The interpreter by hand: what the interleavings of small programs show, from the text."""

from __future__ import annotations

import pytest

from mcheck.frontend.litmus import parse
from tests.interleavings.search import Found, explore

WORDS = ".global .u32 x = 0; .global .u32 y = 0;"
BAR = ".shared .align 8 .b64 b;"
COPY = ".global .align 16 .u32 src[4] = {1, 2, 3, 4}; .shared .align 16 .u32 buf[4]; .global .align 16 .u32 dst[4];"
OP = "mbarrier."
INIT, ARRIVE = f"{OP}init.shared::cta.b64 [b],", f"{OP}arrive.shared::cta.b64 _, [b];"
STATE = f"{OP}arrive.shared::cta.b64 %rd1, [b];"
INVAL = f"{OP}inval.shared::cta.b64 [b];"
WAIT, POLL = f"await {OP}try_wait.parity.shared::cta.b64 [b],", f"{OP}test_wait.parity.shared::cta.b64 %p1, [b],"
COMPLETE, EXPECT = (f"{OP}{what}_tx.relaxed.cta.shared::cta.b64 [b], 16;" for what in ("complete", "expect"))
LOAD = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 16, [b];"
DRAIN = "cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 16; cp.async.bulk.commit_group;"


def found(objects: str, *threads: str, condition: str = "", ctas: bool = False, budget: int = 5000) -> Found:
    """What the interleavings of threads show."""
    roles = "".join(f"P{k}@cta {k if ctas else 0} {{ {text} }}\n" for k, text in enumerate(threads))
    return explore(parse(f"PTX by-hand\n{{ {objects} }}\n{roles}{condition}\n", "by-hand.litmus"), budget)


def values(f: Found) -> set[tuple[int | None, ...]]:
    return {tuple(value for _, value in final) for final in f.finals}


def test_sequential_consistency() -> None:
    one, two = "st.relaxed.gpu.global.u32 [x], 1; ld.relaxed.gpu.global.u32 r0, [y];", ""
    two = one.replace("[x]", "[z]").replace("[y]", "[x]").replace("[z]", "[y]")
    f = found(WORDS, one, two, condition="exists (P0:r0 == 0 /\\ P1:r0 == 0)")
    assert values(f) == {(0, 1), (1, 0), (1, 1)}
    assert set(f.holds) == {False}
    assert not f.races


def test_a_loop_closes_on_itself() -> None:
    spin = "L: ld.acquire.gpu.global.u32 r0, [x]; setp.ne.u32 %p1, r0, 1; @%p1 bra L;"
    f = found(WORDS, spin, "st.release.gpu.global.u32 [x], 1;", condition="exists (P0:r0 == 1)")
    assert (f.whole, f.dead, values(f)) == (True, None, {(1,)})
    assert found(WORDS, spin, "st.release.gpu.global.u32 [x], 2;").dead is not None
    assert found(WORDS, f"{spin} L2: bra L2;", "st.release.gpu.global.u32 [x], 1;").dead is not None


def test_two_loops_that_wait_for_each_other() -> None:
    one = "L: ld.relaxed.gpu.global.u32 r0, [x]; setp.ne.u32 %p1, r0, 1; @%p1 bra L; st.relaxed.gpu.global.u32 [y], 1;"
    other = one.replace("[x]", "[z]").replace("[y]", "[x]").replace("[z]", "[y]")
    assert found(WORDS, one, other).dead is not None


def test_who_counts_without_end_is_not_called_dead() -> None:
    f = found(WORDS, "L: atom.relaxed.gpu.global.add.u32 r0, [x], 1; bra L;", budget=100)
    assert (f.whole, f.dead) == (False, None)


@pytest.mark.parametrize(
    ("one", "two", "races"),
    [
        ("st.global.u32 [x], 1;", "ld.relaxed.gpu.global.u32 r0, [x];", True),
        ("st.relaxed.gpu.global.u32 [x], 1;", "ld.relaxed.gpu.global.u32 r0, [x];", False),
        ("st.relaxed.cta.global.u32 [x], 1;", "ld.relaxed.gpu.global.u32 r0, [x];", True),
        ("st.relaxed.gpu.global.u32 [x], 1;", "ld.relaxed.gpu.global.u16 r0, [x];", True),
        ("ld.global.u32 r0, [x];", "ld.global.u32 r0, [x];", False),
        ("st.global.u32 [x], 5;", "await ld.relaxed.gpu.global.u32 r0, [x] == 1;", True),
        ("ld.global.u32 r0, [x];", "atom.relaxed.gpu.global.cas.b32 r0, [x], 7, 1;", False),
        ("ld.global.u32 r0, [x];", "atom.relaxed.gpu.global.cas.b32 r0, [x], 0, 1;", True),
    ],
)
def test_accesses_that_follow_each_other(one: str, two: str, races: bool) -> None:
    assert bool(found(WORDS, one, two, ctas=True).races) == races


def test_what_is_handed_over_does_not_race() -> None:
    one = "st.global.u32 [x], 1; st.release.gpu.global.u32 [y], 1;"
    two = "await ld.acquire.gpu.global.u32 r0, [y] == 1; ld.global.u32 r1, [x];"
    f = found(WORDS, one, two, condition="exists (P1:r1 == 0)")
    assert (f.races, set(f.holds)) == ({}, {False})


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("UB201", ARRIVE),
        ("UB201", f"{INIT} 1; {INVAL} {POLL} 0;"),
        ("UB202", f"{INIT} 1; {INIT} 1;"),
        ("UB202", f"{INIT} 1; ld.shared.u32 r0, [b];"),
        ("UB205", f"{INIT} 0;"),
        ("UB205", f"{INIT} 1; {OP}arrive.shared::cta.b64 _, [b], 2;"),
        ("UB206", f"{INIT} 1; {OP}arrive.noComplete.shared::cta.b64 %rd1, [b], 1;"),
        ("UB207", f"{INIT} 1; {OP}arrive_drop.shared::cta.b64 _, [b];"),
        ("UB208", f"{INIT} 1048575; cp.async.mbarrier.arrive.shared::cta.b64 [b];"),
        ("UB210", f"{INIT} 1; {STATE} {WAIT} 0; {ARRIVE} {OP}test_wait.shared::cta.b64 %p1, [b], %rd1;"),
        ("UB211", f"{INIT} 2; {STATE} {OP}pending_count.b64 r0, %rd1;"),
        ("UB212", f"{INIT} 1; {ARRIVE} {ARRIVE}"),
        ("UB217", f"{INIT} 1; {COMPLETE} {ARRIVE} {EXPECT}"),
        ("UB215", f"{INIT} 1; {OP}arrive.expect_tx.shared::cta.b64 _, [b], 16; {LOAD} {INVAL}"),
        ("UB106", "cp.async.cg.shared.global [buf], [src], 16; cp.async.cg.shared.global [buf], [src], 16;"),
        ("UB301", "mov.u32 r0, 48; barrier.sync 1, r0;"),
        ("UB302", "mov.u32 r0, 16; barrier.sync r0, 32;"),
        ("UB306", "barrier.cluster.arrive; barrier.cluster.arrive;"),
    ],
)  # fmt: skip
def test_a_misuse_is_met(code: str, text: str) -> None:
    f = found(f"{BAR} {COPY}", text)
    assert any(code in misuse for misuse in f.misuses)


def test_phases_and_parities() -> None:
    show = "selp.u32 r1, 1, 0, %p1;"
    assert values(found(BAR, f"{INIT} 1; {POLL} 1; {show}", condition="exists (P0:r1 == 1)")) == {(1,)}
    assert values(found(BAR, f"{INIT} 1; {POLL} 0; {show}", condition="exists (P0:r1 == 1)")) == {(0,)}
    assert values(found(BAR, f"{INIT} 1; {ARRIVE} {POLL} 0; {show}", condition="exists (P0:r1 == 1)")) == {(1,)}
    assert found(BAR, f"{INIT} 2; {ARRIVE} {WAIT} 0;").dead is not None
    f = found(BAR, f"{INIT} 1; {OP}expect_tx.relaxed.cta.shared::cta.b64 [b], 16; {ARRIVE} {WAIT} 0;")
    assert f.dead is not None


def test_a_ring_without_end_has_finitely_many_states() -> None:
    f = found(BAR, f"{INIT} 1; L: {ARRIVE} {WAIT} 0; {ARRIVE} {WAIT} 1; bra L;")
    assert f.whole
    assert f.dead is not None  # nobody ever comes to an end
    assert f.misuses == {}


def test_barriers_count_warps() -> None:
    meet = "bar.sync 1, 64;"
    assert found("", meet, meet).dead is None
    assert found("", meet, meet, meet).dead is not None
    assert found("", "bar.sync 0;", "bar.sync 0;", "exit;").dead is None
    assert found("", "bar.arrive 1, 64;", "bar.sync 1, 64;").dead is None
    assert any("UB304" in m for m in found("", "bar.sync 1, 64;", "bar.sync 1, 96;").misuses)
    red = "setp.eq.u32 %p1, 0, 0; bar.red.popc.u32 r0, 1, %p1;"
    assert values(found("", red, red, condition="exists (P0:r0 == 2)")) == {(2,)}


def test_a_barrier_orders() -> None:
    f = found(WORDS, "st.global.u32 [x], 1; bar.sync 0;", "bar.sync 0; ld.global.u32 r0, [x];",
              condition="exists (P1:r0 == 0)")  # fmt: skip
    assert (f.races, values(f)) == ({}, {(1,)})


def test_a_cluster_meets_in_two_halves() -> None:
    both = "barrier.cluster.arrive; barrier.cluster.wait;"
    text = "PTX by-hand\n{ }\nP@cluster 0, cta 0 { %s }\nQ@cluster 0, cta 1 { %s }\n"
    assert explore(parse(text % (both, both), "x.litmus")).dead is None
    assert explore(parse(text % (both, "barrier.cluster.arrive;" + both), "x.litmus")).misuses
    assert explore(parse(text % (both * 2, both), "x.litmus")).dead is None  # who has exited is not waited for
    stays = both + " L: bra L;"
    assert explore(parse(text % (both * 2, stays), "x.litmus")).dead is not None


def test_copies_act_when_they_like() -> None:
    ready = f"{INIT} 1; {OP}arrive.expect_tx.shared::cta.b64 _, [b], 16; {LOAD}"
    f = found(f"{BAR} {COPY}", f"{ready} {WAIT} 0; ld.shared.u32 r0, [buf];", condition="exists (P0:r0 == 1)")
    assert (f.races, values(f)) == ({}, {(1,)})
    assert found(f"{BAR} {COPY}", f"{ready} ld.shared.u32 r0, [buf]; {WAIT} 0;").races
    assert not found(COPY, f"{DRAIN} cp.async.bulk.wait_group.read 0; st.shared.u32 [buf], 1;").races
    assert found(COPY, f"{DRAIN} cp.async.bulk.wait_group.read 0; ld.global.u32 r0, [dst];").races
    assert not found(COPY, f"{DRAIN} cp.async.bulk.wait_group 0; ld.global.u32 r0, [dst];").races
    assert found(COPY, f"{DRAIN} cp.async.bulk.wait_group 1; ld.global.u32 r0, [dst];").races


def test_an_arrival_follows_its_copies() -> None:
    plain = "cp.async.ca.shared.global [buf], [src], 4; cp.async.mbarrier.arrive.noinc.shared::cta.b64 [b];"
    f = found(f"{BAR} {COPY}", f"{INIT} 1; {plain} {WAIT} 0; ld.shared.u32 r0, [buf];", condition="exists (P0:r0 == 1)")
    assert (f.dead, f.races, values(f)) == (None, {}, {(1,)})
    inc = plain.replace(".noinc", "")
    f = found(f"{BAR} {COPY}", f"{INIT} 1; {inc} {ARRIVE} {WAIT} 0; ld.shared.u32 r0, [buf];")
    assert (f.dead, f.races, f.misuses) == (None, {}, {})


CLUSTER = """PTX by-hand
{ .global .align 16 .u32 src[4] = {1, 2, 3, 4}; .shared .align 128 .u32 buf[4]; .shared .align 8 .b64 b; %s }
P@cluster 0, cta 0 { %s barrier.cluster.arrive; barrier.cluster.wait; %s }
Q@cluster 0, cta 1 { %s barrier.cluster.arrive; barrier.cluster.wait; %s }
%s
"""
FULL = f"{INIT} 1; {OP}arrive.expect_tx.shared::cta.b64 _, [b], 16;"
TO_BOTH = (
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [buf], [src], 16, [b], 3;"
)
READ = f"{WAIT} 0; ld.shared.u32 r0, [buf];"
MEET = "barrier.cluster.arrive; barrier.cluster.wait;"


def clustered(*, objects: str = "", start: str = FULL, p: str = "", q: str = "", condition: str = "") -> Found:
    """What two CTAs of a cluster show, which both begin their mbarriers."""
    text = CLUSTER % (objects, start, p, start, q, condition)
    return explore(parse(text, "by-hand.litmus"))


def test_a_multicast_tells_each_cta() -> None:
    f = clustered(p=f"{TO_BOTH} {READ} {MEET}", q=f"{READ} {MEET}", condition="exists (P:r0 == 1 /\\ Q:r0 == 1)")
    assert (f.dead, f.races, f.misuses, values(f)) == (None, {}, {}, {(1, 1)})
    alone = TO_BOTH.replace(", 3;", ", 1;")
    assert clustered(p=f"{alone} {READ}", q=READ).dead is not None
    assert any("UB107" in m for m in clustered(p=TO_BOTH.replace(", 3;", ", 4;")).misuses)
    early = clustered(p=f"{TO_BOTH} {READ} {MEET}", q=f"ld.shared.u32 r0, [buf]; {READ} {MEET}")
    assert early.races


def test_a_copy_to_a_cta_that_is_gone() -> None:
    store = "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [buf@1], 7, [b@1];"
    assert any("UB502" in m for m in clustered(p=store).misuses)
    kept = FULL.replace("16", "4")
    f = clustered(start=kept, p=f"{store} {MEET}", q=f"{READ} {MEET}", condition="exists (Q:r0 == 7)")
    assert (f.dead, f.races, f.misuses, values(f)) == (None, {}, {}, {(7,)})


def test_reductions_of_others() -> None:
    red = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [buf@1], 5, [b@1];"
    f = clustered(
        start=FULL.replace("16", "8"), p=f"{red} {red} {MEET}", q=f"{READ} {MEET}", objects=".global .u32 x = 0;"
    )
    assert (f.dead, f.races, f.misuses) == (None, {}, {})
    add = "atom.relaxed.cluster.shared.add.u32 r0, [buf], 1;"
    assert not clustered(start=FULL.replace("16", "4"), p=f"{red} {MEET}", q=f"{add} {MEET}").races
    weak = "ld.shared.u32 r0, [buf];"
    assert clustered(start=FULL.replace("16", "4"), p=f"{red} {MEET}", q=f"{weak} {MEET}").races
    drain = "cp.reduce.async.bulk.global.shared::cta.bulk_group.max.u32 [dst], [buf], 16; cp.async.bulk.commit_group;"
    text = f"st.shared.u32 [buf], 9; {drain} cp.async.bulk.wait_group 0; ld.global.u32 r0, [dst];"
    assert values(found(COPY, text, condition="exists (P0:r0 == 9)")) == {(9,)}


PRODUCT = (
    "wgmma.fence.sync.aligned;"
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, [buf, 16], [buf, 16];"
    "wgmma.commit_group.sync.aligned;"
)


def test_products_read_until_their_group_is_over() -> None:
    wait, write = "wgmma.wait_group.sync.aligned", "st.shared.u32 [buf], 1;"
    assert found(COPY, f"{PRODUCT} {write}").races
    assert found(COPY, f"{PRODUCT} {wait} 1; {write}").races
    assert not found(COPY, f"{PRODUCT} {wait} 0; {write}").races
    assert not found(COPY, f"{PRODUCT} ld.shared.u32 r0, [buf];").races
    assert found(COPY, PRODUCT, f"{PRODUCT} {wait} 0; bar.sync 0; {write}", "bar.sync 0;").races == {}
    late = f"{PRODUCT.replace('wgmma.commit_group', 'bar.sync 1, 64; wgmma.commit_group')} {wait} 0;"
    assert found(COPY, f"{PRODUCT} {wait} 0; bar.sync 1, 64;", late).dead is not None


MAP = (
    ".global .tensormap tm = { global_address = src, elemtype = u32, rank = 2, global_dim = {8, 2},"
    " global_stride = {32}, box_dim = {4, 2}, element_stride = {1, 1}, interleave_layout = none, swizzle_mode = none,"
    " swizzle_atomicity = 16B, fill_mode = zero };"
)
TENSOR = (
    f".global .align 16 .u32 src[16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};"
    f"{MAP} .shared .align 128 .u32 buf[8]; {BAR}"
)


@pytest.mark.parametrize(
    ("start", "words"),
    [("0, 0", (0, 3, 8, 11)), ("4, 0", (4, 7, 12, 15)), ("4, 1", (12, 15, 0, 0)), ("-4, 0", (0,) * 4)],
)
def test_a_box_of_a_tensor(start: str, words: tuple[int, ...]) -> None:
    load = (
        f"cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [buf], [tm, {{{start}}}], [b];"
    )
    text = f"{FULL.replace('16', '32')} {load} {WAIT} 0; " + " ".join(
        f"ld.shared.u32 r{n}, [buf + {4 * k}];" for n, k in enumerate((0, 3, 4, 7))
    )
    f = found(TENSOR, text, condition="locations [P0:r0; P0:r1; P0:r2; P0:r3;] exists (true)")
    assert (f.dead, f.races, f.misuses, values(f)) == (None, {}, {}, {words})


def test_a_map_is_read_when_the_copy_acts() -> None:
    store = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [tm, {%s}], [buf]; cp.async.bulk.commit_group;"
    other = "tensormap.replace.tile.global_address.global.b1024.b64 [tm], src + 64;"
    assert found(TENSOR, f"{store % '0, 0'} {other}").races
    assert not found(TENSOR, f"{store % '0, 0'} cp.async.bulk.wait_group.read 0; {other}").races
    assert any("UB401" in m for m in found(TENSOR, store % "1, 0").misuses)
    assert any("UB402" in m for m in found(TENSOR, store % "0, -1").misuses)


def test_a_copy_that_outlives_its_cta() -> None:
    """Open question Q18: of the own CTA for review, so that it has to be told."""
    ready = f"{INIT} 1; {OP}arrive.expect_tx.shared::cta.b64 _, [b], 16; {LOAD}"
    assert any("UB504" in m for m in found(f"{BAR} {COPY}", ready).misuses)
    assert not found(f"{BAR} {COPY}", f"{ready} {WAIT} 0;").misuses
    assert any("UB501" in m for m in found(COPY, DRAIN).misuses)
    assert not found(COPY, f"{DRAIN} cp.async.bulk.wait_group.read 0;").misuses


def test_without_any_proxy_fence_generic_accesses_race_with_copies() -> None:
    """9.7.9.25.2 and open questions Q1, Q5: order in time is not enough, whatever the order is."""
    ready = f"{INIT} 1; {OP}arrive.expect_tx.shared::cta.b64 _, [b], 16;"
    fence = "fence.proxy.async;"
    for access in ("ld.shared.u32 r0, [buf];", "st.shared.u32 [buf], 1;"):
        assert found(f"{BAR} {COPY}", f"{access} {ready} {LOAD} {WAIT} 0;").races
        assert not found(f"{BAR} {COPY}", f"{access} {fence} {ready} {LOAD} {WAIT} 0;").races
        assert not found(f"{BAR} {COPY}", f"{ready} {LOAD} {WAIT} 0; {access}").races
    assert not found(COPY, f"ld.shared.u32 r0, [buf]; {DRAIN} cp.async.bulk.wait_group 0;").races
    assert found(COPY, f"st.shared.u32 [buf], 1; {DRAIN} cp.async.bulk.wait_group 0;").races
