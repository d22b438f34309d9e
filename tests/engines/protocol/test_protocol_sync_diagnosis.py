"""A hand-over that does not count is told which half is missing, and a wait whether it was meant."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.engines.protocol.findings_answer import check
from mcheck.findings.finding import Finding
from mcheck.findings.repair import apply_edits, make_edits
from mcheck.findings.trace import Step, StepKind
from mcheck.frontend.litmus import parse
from mcheck.report.trace import MOST_COLUMNS, format_trace


def found(text: str) -> list[Finding]:
    return list(check(parse(text, "judged.litmus"), load_model("ptx-9.0"), timeout=60).findings)


def missing(text: str) -> str:
    return " / ".join(f.missing for f in found(text) if f.severity == "error")


HANDED = """PTX handed
{{ .global .u32 x, f; }}
A@cta 0 {{ {before} st.global.u32 [x], 1; {give} {after} }}
B@cta 1 {{ {take} if (r0 == 1) {{ {then} ld.global.u32 r1, [x]; }} }}
"""
RELAXED = "st.relaxed.gpu.global.u32 [f], 1;"
SEEN = "ld.relaxed.gpu.global.u32 r0, [f];"


@pytest.mark.daily
@pytest.mark.parametrize(
    ("give", "after", "take", "then", "told"),
    [
        ("red.release.gpu.global.add.u32 [f], 1;", "", SEEN, "", "Execute fence.acq_rel.gpu after line 4"),
        ("fence.release.gpu; " + RELAXED, "", SEEN, "fence.release.gpu;", "make the ld of line 4 .acquire.gpu"),
        (RELAXED, "", SEEN, "fence.acquire.gpu;", "make the st of line 3 .release.gpu"),
        (RELAXED, "fence.release.gpu;", SEEN, "fence.acquire.gpu;", "The fence at line 3 comes after it"),
        ("membar.cta; " + RELAXED, "", SEEN, "fence.acquire.gpu;", "Give scope .gpu (membar.gl) at line 3"),
    ],
    ids=["red", "no-acquire", "no-release", "fence-late", "membar"],
)
def test_the_half_that_is_missing_is_named(give: str, after: str, take: str, then: str, told: str) -> None:
    assert told in missing(HANDED.format(before="", give=give, after=after, take=take, then=then))


def test_an_acquire_behind_an_atomic_of_too_narrow_a_scope_is_not_called_missing() -> None:
    """The chain of atomics that an acquire observes a release by is of morally strong pairs (8.9.2)."""
    told = missing("""PTX relayed
{ .global .u32 x, f = 0; }
A@cta 0 { st.global.u32 [x], 1; st.release.gpu.global.u32 [f], 1; }
B@cta 1 { await ld.relaxed.gpu.global.u32 r9, [f] == 1; atom.relaxed.cta.global.add.u32 r0, [f], 1; }
C@cta 2 { await ld.acquire.gpu.global.u32 r0, [f] == 2; ld.global.u32 r1, [x]; }
""")
    assert "Give the atom of line 4 scope .gpu." in told
    assert "missing where it is seen" not in told


CLUSTER = """PTX in-a-cluster
{ .shared .u32 x; .shared .b64 b; }
A@cluster 0, cta 0 {
  barrier.cluster.arrive; barrier.cluster.wait;
  st.shared::cluster.u32 [x@1], 6;
  GIVE
}
B@cluster 0, cta 1 {
  mbarrier.init.shared::cta.b64 [b], 1;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive; barrier.cluster.wait;
  await mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 [b], 0;
  ld.shared.u32 r0, [x];
}
"""
ARRIVE = "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [b@1];"


def test_a_restricted_fence_that_leaves_the_bytes_out_is_named() -> None:
    """x is in the window of the peer, which ``shared::cta`` is not (9.7.13.4)."""
    told = missing(CLUSTER.replace("GIVE", "fence.release.sync_restrict::shared::cta.cluster; " + ARRIVE))
    assert "The fence at line 6 is for shared::cta, not for these bytes" in told


def test_a_fence_of_too_narrow_a_scope_is_named() -> None:
    told = missing(CLUSTER.replace("GIVE", "fence.acq_rel.cta; " + ARRIVE))
    assert "scope" in told
    assert ".cluster" in told


ASYNC = """PTX beside-a-copy
{ .global .align 16 .u32 src[8]; .shared .align 16 .u32 buf[8]; .shared .b64 b; }
A@cta 0 {
  mbarrier.init.shared::cta.b64 [b], 1;
  bar.sync 0;
  st.shared.u32 [buf + 20], 9;
  cp.async.cg.shared::cta.global [buf], [src], 16;
  cp.async.mbarrier.arrive.noinc.shared::cta.b64 [b];
}
B@cta 0 {
  bar.sync 0;
  await mbarrier.try_wait.parity.shared::cta.b64 [b], 0;
  ld.shared.u32 r0, [buf + 20];
}
"""


def test_an_arrive_for_copies_publishes_nothing_else() -> None:
    told = missing(ASYNC)
    assert "it tracks the cp.async before it, and nothing else" in told
    assert "ends with" not in told


def test_an_arrive_that_raises_its_own_count_is_named_in_a_deadlock() -> None:
    """The net effect on the pending count is none, a trap of the form without .noinc (9.7.13.15.15)."""
    told = missing(ASYNC.replace(".noinc", ""))
    assert "The arrive at line 8 raises the count that it lowers: give it .noinc" in told


GROUPS = """PTX groups
{ .global .align 16 .u32 src[8]; .shared .align 16 .u32 buf[8]; }
A@cta 0, warp 0, lane 0 {
  cp.async.ca.shared::cta.global [buf], [src], 16;
  cp.async.commit_group;
  cp.async.ca.shared::cta.global [buf + 16], [src + 16], 16;
  COMMIT
  cp.async.wait_group 1;
  ld.shared.u32 r0, [buf + 16];
  WAIT
}
"""


def test_a_wait_is_told_to_leave_a_group_only_if_there_is_one() -> None:
    opened = missing(GROUPS.replace("COMMIT", "").replace("WAIT", ""))
    assert "The wait at line 8 does not cover the operation: no commit_group stands between them." in opened
    closed = missing(GROUPS.replace("COMMIT", "cp.async.commit_group;").replace("WAIT", ""))
    assert "The wait at line 8 leaves the latest group pending, which is this one." in closed


WARPS = """PTX warps
{ .global .align 16 .b8 src[512]; .shared .align 16 .b8 buf[512]; }
w@cta 0, warp 0..2 {
  if (%warpid == 0) { cp.async.cg.shared::cta.global [buf + 16*%laneid], [src + 16*%laneid], 16; }
  cp.async.commit_group;
  FIRST
  SECOND
  ld.shared.u32 r0, [buf + 4*%laneid + 128*%warpid];
}
"""


def test_a_wait_that_covers_is_not_blamed() -> None:
    told = missing(WARPS.replace("FIRST", "cp.async.wait_group 0;").replace("SECOND", ""))
    assert told.startswith("Put a barrier between the wait at line 6 and line 8, or a release that is acquired.")
    assert "leaves" not in told


def test_behind_a_wait_that_follows_the_barrier_another_barrier_does_as_well_as_an_earlier_wait() -> None:
    """Not that another thread executes it, who executes the same statement."""
    told = missing(WARPS.replace("FIRST", "bar.sync 0;").replace("SECOND", "cp.async.wait_group 0;"))
    assert "Put a barrier between the wait at line 7 and line 8" in told
    assert "Or execute cp.async.wait_group 0 before line 6, which hands the bytes over." in told
    assert "groups belong" not in told


WGMMA = """PTX operand
{ .shared .align 128 .b8 a[1024]; }
mma@cta 0, warpgroup 0 {
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {r1}, [a, 1024], [a, 1024];
  wgmma.commit_group.sync.aligned;
  st.shared.u64 [a + 8*%tid.x], 1;
}
"""


def test_what_a_lane_does_behind_its_warps_wgmma_stays_behind() -> None:
    told = missing(WGMMA)
    assert "Execute wgmma.wait_group.sync.aligned 0 before line 7." in told


def test_only_the_owner_waits_for_an_mbarrier() -> None:
    told = missing("""PTX a-copy-to-a-peer
{ .global .align 16 .u32 src[4]; .shared .align 16 .u32 buf[4]; .shared .b64 b; }
A@cluster 0, cta 0 {
  barrier.cluster.arrive; barrier.cluster.wait;
  for k in 0..2 {
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf@1], [src], 16, [b@1];
  }
}
B@cluster 0, cta 1 {
  mbarrier.init.shared::cta.b64 [b], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [b], 32;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive; barrier.cluster.wait;
  await mbarrier.try_wait.parity.shared::cta.b64 [b], 0;
}
""")
    assert "Let a thread of its CTA wait for phase 0 (parity 0) of b@1" in told


def test_the_steps_of_many_threads_name_them() -> None:
    steps = [Step(thread=f"P{k}", instruction="bar.sync 0", kind=StepKind.BARRIER, number=k + 1) for k in range(9)]
    assert format_trace(tuple(steps))[::8] == ("step  thread", "   8  P7            bar.sync 0")
    assert format_trace(tuple(steps[:MOST_COLUMNS]))[0].split() == ["step", *(f"P{k}" for k in range(MOST_COLUMNS))]


REDUCED = """PTX beside-a-reduction
{ .global .align 16 .u32 out[4]; .shared .align 16 .u32 buf[4]; }
A@cta 0, warp 0, lane 0 {
  cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [out], [buf], 16;
  red.relaxed.gpu.global.add.u32 [out], 1;
}
"""
UNCOMMITTED = WGMMA.replace("commit_group", "wait_group").replace("aligned;\n  st", "aligned 0;\n  st")


@pytest.mark.daily
@pytest.mark.parametrize("text", [REDUCED, UNCOMMITTED], ids=["reads-of-a-reduction", "wgmma-without-a-commit"])
def test_the_wait_that_is_named_mends_it(text: str) -> None:
    """A reduction reads what it changes, which ``.read`` does not wait for (9.7.9.25.6.2); a group has to be closed."""
    first = next(f for f in found(text) if f.code == "RACE003")
    lines = text.split("\n")
    changes = make_edits(first.fixes, lines)
    assert changes
    assert [f.code for f in found("\n".join(apply_edits(lines, changes))) if f.severity == "error"] == []


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("fence.proxy.tensormap::generic.release.cta;", "", "the fence at line 5 has scope .cta, and needs .gpu"),
        ("", "fence.proxy.tensormap::generic.release.gpu;", "the fence at line 7 comes after it"),
    ],
    ids=["narrow", "late"],
)
def test_the_release_half_of_a_proxy_fence_is_one(before: str, after: str, told: str) -> None:
    text = """PTX map-for-another
{ .global .align 128 .u32 g[64]; .global .u32 flag; .shared .align 128 .b8 buf[128]; .shared .b64 full; MAP }
A@cta 0 {
  tensormap.replace.tile.global_address.global.b1024.b64 [tm], g;
  BEFORE
  st.relaxed.gpu.global.u32 [flag], 1;
  AFTER
}
B@cta 1 {
  mbarrier.init.shared::cta.b64 [full], 1;
  await ld.relaxed.gpu.global.u32 r0, [flag] == 1;
  fence.proxy.tensormap::generic.acquire.gpu [tm], 128;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;
  cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes.tile [buf], [tm, {0}], [full];
  await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;
}
"""
    fields = (
        "global_address = g, elemtype = u32, rank = 1, global_dim = {64}, global_stride = {}, box_dim = {32}, "
        "element_stride = {1}, interleave_layout = none, swizzle_mode = none, swizzle_atomicity = 16B, fill_mode = zero"
    )
    text = text.replace("MAP", f".global .tensormap tm = {{ {fields} }};")
    assert told in missing(text.replace("BEFORE", before).replace("AFTER", after))


def test_what_makes_lanes_meet_is_told_to_hand_nothing_over() -> None:
    """shfl.sync, elect.sync and their like order no memory (Q23)."""
    told = missing("""PTX lanes-that-meet
{ .shared .u32 x; }
w@cta 0, warp 0 {
  if (%laneid == 0) { st.shared.u32 [x], 1; }
  elect.sync r0|%p1, 0xffffffff;
  ld.shared.u32 r2, [x];
}
""")
    assert "elect.sync at line 5 makes lanes wait for each other, and orders no memory" in told


@pytest.mark.parametrize(
    "signal", ["mbarrier.arrive.shared::cta.b64 _, [r1]", "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [r1]"]
)
def test_who_signals_what_a_register_names_is_not_told_to_be_gone(signal: str) -> None:
    told = missing(f"""PTX slot-in-a-register
{{ .shared .b64 bar, go; }}
A@cta 0 {{
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.init.shared::cta.b64 [go], 1;
  bar.sync 0;
  mov.u32 r1, bar;
  await mbarrier.try_wait.parity.shared::cta.b64 [go], 0;
  {signal};
}}
B@cta 0 {{
  bar.sync 0;
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
  mbarrier.arrive.shared::cta.b64 _, [go];
}}
""")
    assert "Still to signal go@0: B at line 14, which is stuck at line 13 on bar@0." in told
    assert "No thread is left to signal bar@0" not in told


def test_two_lanes_are_named_where_two_lanes_race() -> None:
    """Lane 0 has waited for its own copy, and reads what it has written: lane 1 reads bytes of lane 0's."""
    (race,) = (f for f in found(WARPS.replace("FIRST", "cp.async.wait_group 0;").replace("SECOND", "")) if f.accesses)
    assert [a.thread for a in race.accesses] == ["w[0]", "w[1]"]
    assert "[bytes 4..128]" in race.message


LOOK = """PTX look
{ .shared .u32 x; .shared .b64 b; }
A@cta 0 {
  mbarrier.init.shared::cta.b64 [b], 1;
  bar.sync 0;
  st.shared.u32 [x], 1;
  mbarrier.arrive.shared::cta.b64 _, [b];
}
B@cta 0 {
  bar.sync 0;
  mbarrier.test_wait.parity.shared::cta.b64 %p1, [b], 0;
  GUARD ld.shared.u32 r0, [x];
}
"""


@pytest.mark.daily(days=3, least=0)
@pytest.mark.parametrize("guard", ["", "@!%p1"], ids=["none", "inverted"])
def test_a_look_whose_answer_nothing_waits_for_is_named(guard: str) -> None:
    told = missing(LOOK.replace("GUARD", guard))
    repeat = "Repeat the mbarrier.test_wait at line 11 until it answers true"
    assert told == f"{repeat}: a single test may answer false, and line 12 then comes too early."
    assert missing(LOOK.replace("GUARD", "@%p1")) == ""


INIT = """PTX init-for-a-peer
{ .shared .b64 b; }
A@cluster 0, cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [b], 1;
  OWN
  MEET
  await mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 [b], 0;
}
F@cluster 0, cta 0, warp 1, lane 0 { OTHER MEET }
B@cluster 0, cta 1, warp 0, lane 0 {
  MEET
  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [b@0];
}
"""
MEET = "barrier.cluster.arrive.relaxed; barrier.cluster.wait;"
FENCE = "fence.mbarrier_init.release.cluster;"


@pytest.mark.daily
@pytest.mark.parametrize(
    ("own", "other", "meet", "told"),
    [
        ("", FENCE, MEET, "The one at line 9 is for the inits of its own thread, F."),
        (
            FENCE,
            "",
            "",
            "Let barrier.cluster.arrive and barrier.cluster.wait stand in both CTAs between line 5 and line 12.",
        ),
        ("", "", MEET, "fence.mbarrier_init.release.cluster after line 4, in the thread that initialises."),
        (
            "",
            "",
            "",
            "in the thread that initialises, and barrier.cluster.arrive and barrier.cluster.wait between that",
        ),
    ],
    ids=["fence-elsewhere", "no-barrier", "no-fence", "neither"],
)
def test_what_is_there_of_a_publication_counts(own: str, other: str, meet: str, told: str) -> None:
    assert told in missing(INIT.replace("OWN", own).replace("OTHER", other).replace("MEET", meet))


def test_a_fence_of_inits_stands_behind_the_last_one() -> None:
    text = INIT.replace(".b64 b;", ".b64 b; .shared .b64 c;").replace("OWN", "mbarrier.init.shared::cta.b64 [c], 1;")
    assert f"{FENCE[:-1]} after line 5" in missing(text.replace("OTHER", "").replace("MEET", MEET))


def test_different_counts_of_a_barrier_are_told_with_both_lines() -> None:
    text = "PTX counts\n{ }\nP@cta 0 {\n  barrier.sync 1, 64;\n}\nQ@cta 0 {\n  barrier.sync 1, 96;\n}\n"
    (clash,) = found(text)
    assert clash.message == "barrier 1 counts 64 threads at line 4, but 96 threads at line 7"
    assert [a.line for a in clash.accesses] == [4, 7]
