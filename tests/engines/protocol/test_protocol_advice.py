"""Remedies that were tried: what they say, and that the program with the change has no error."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.checking.check.command import check_case
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.inquiry import run_case
from mcheck.engines.protocol.findings_answer import check
from mcheck.findings.finding import Finding
from mcheck.findings.repair import apply_edits, make_edits
from mcheck.frontend.litmus import parse


def errors(text: str) -> list[Finding]:
    found = check(parse(text, "advised.litmus"), load_model("ptx-9.0"), timeout=60).findings
    return [f for f in found if f.severity == "error"]


def mended(text: str, finding: Finding) -> str:
    lines = text.split("\n")
    changes = make_edits(finding.fixes, lines)
    assert changes, finding.missing
    return "\n".join(apply_edits(lines, changes))


FENCE_BEFORE_THE_BARRIER = """PTX fence-before-the-barrier
{ .global .u32 x, n; }
other@cta 0, warp 1, lane 0 {
  st.global.u32 [x], 1;
  fence.acq_rel.gpu;
  bar.sync 0;
}
zero@cta 0, warp 0, lane 0 {
  bar.sync 0;
  red.relaxed.gpu.global.add.u32 [n], 1;
}
reader@cta 1, warp 0, lane 0 {
  await ld.relaxed.gpu.global.u32 r0, [n] == 1;
  fence.acq_rel.gpu;
  ld.global.u32 r1, [x];
}
exists (reader:r1 == 0)
"""


def test_a_fence_before_the_barrier_is_not_one_of_the_thread_behind_it() -> None:
    (found,) = errors(FENCE_BEFORE_THE_BARRIER)
    assert found.missing == (
        "Execute fence.acq_rel.gpu before line 10, or make the red of line 10 .release.gpu: zero hands on at line 10 "
        "what it took over at line 9. The fence of other at line 5 does not do: by the letter of 8.8 a fence releases "
        "through a write of its own thread, and line 10 is another's. Much production code leaves it at that."
    )
    assert errors(mended(FENCE_BEFORE_THE_BARRIER, found)) == []
    assert errors(FENCE_BEFORE_THE_BARRIER.replace("red.relaxed", "red.release")) == []


@pytest.mark.parametrize("engine", ["explicit", "z3", "auto"])
def test_all_engines_and_commands_say_so(engine: str) -> None:
    case = Case("t.litmus", text=FENCE_BEFORE_THE_BARRIER)
    asked = check_case(case, Settings(timeout=60), Options(engine=engine)).findings
    for found in (asked, run_case(case, Settings(timeout=60)).findings):
        assert any(f.missing.startswith("Execute fence.acq_rel.gpu before line 10") for f in found)


LAST_BLOCK = """PTX last-block
{
  .global .align 128 .u32 part[2][64];
  .global .u32 done = 0;
  .shared .u32 last;
}
block@cta 0..2, warp 0..2 {
  st.global.u32 [part[%ctaid.x] + 4*%tid.x], 1;
  fence.sc.gpu;
  bar.sync 0;
  if (%tid.x == 0) {
    FIRST
    atom.SEM.gpu.global.add.u32 r0, [done], 1;
    SECOND
    st.shared.u32 [last], r0;
  }
  bar.sync 0;
  ld.shared.u32 r1, [last];
  if (r1 == 1) {
    THIRD
    ld.global.u32 r2, [part[0] + 4*(63 - %tid.x)];
  }
}
"""
FENCE = "fence.acq_rel.gpu;"


def last_block(*, sem: str = "relaxed", first: str = "", second: str = "", third: str = "") -> str:
    text = LAST_BLOCK.replace("SEM", sem).replace("FIRST", first)
    return text.replace("SECOND", second).replace("THIRD", third)


@pytest.mark.daily(days=6, least=0)
@pytest.mark.parametrize(("second", "third"), [("", ""), ("", FENCE), (FENCE, "")], ids=["none", "all", "zero"])
def test_thread_zero_hands_on_what_its_block_has_done(second: str, third: str) -> None:
    found = errors(text := last_block(second=second, third=third))
    assert found
    for each in found:
        assert each.missing.startswith("Execute fence.acq_rel.gpu before line 13")
        assert "Much production code leaves it at that." in each.missing
        assert ("after line 13" in each.missing) is not second
        assert errors(mended(text, each)) == []
    assert errors(last_block(sem="release" if second else "acq_rel", second=second, third=third)) == []


COUNT = """PTX count
{ .shared .align 128 .u32 s[64]; }
giver@cta 0, warp 0..2 {
  st.shared.u32 [s + 4*%tid.x], 3;
  bar.arrive 1, 64;
}
taker@cta 0, warp 2..4 {
  bar.sync 1, 64;
  ld.shared.u32 r0, [s + 4*(127 - %tid.x)];
}
"""


def test_a_count_that_is_complete_without_the_others() -> None:
    for found in errors(COUNT):
        assert "let taker[" in found.missing
        assert "Count 128 threads at lines 5, 8: all that come to it." in found.missing
    assert errors(COUNT)
    assert errors(COUNT.replace("1, 64", "1, 128")) == []


CLASH = """PTX clash
{ .shared .align 16 .u32 scratch[2][2]; }
one@cta 0, warp 0..2, lane 0 {
  st.shared.u32 [scratch[0] + 4*%warpid], 1;
  bar.sync 1, 64;
  ld.shared.u32 r0, [scratch[0] + 4*(1 - %warpid)];
}
two@cta 0, warp 2..4, lane 0 {
  st.shared.u32 [scratch[1] + 4*(%warpid - 2)], 1;
  bar.sync 1, 64;
  ld.shared.u32 r0, [scratch[1] + 4*(3 - %warpid)];
}
"""


def test_two_groups_at_one_barrier() -> None:
    found = errors(CLASH)
    assert found
    for each in found:
        assert each.missing.startswith("Barrier 1 let ")
        assert each.missing.endswith("Give one a barrier of its own: 2 instead of 1 at line 5.")
    lines = CLASH.split("\n")
    lines[4] = lines[4].replace("bar.sync 1", "bar.sync 2")
    assert errors("\n".join(lines)) == []


AHEAD = """PTX ahead
{ .shared .align 16 .u32 out[3]; }
math@cta 0, warp 0..2 {
  for k in 0..2 {
    if (%tid.x == 0) { st.shared.u32 [out + 4*k], k; }
    bar.arrive NUMBER, 96;
  }
}
io@cta 0, warp 2 {
  for k in 0..2 {
    bar.sync NUMBER, 96;
    ld.shared.u32 r0, [out + 4*k];
  }
}
"""


@pytest.mark.daily(least=0)
def test_a_warp_that_arrives_again_before_the_round_is_over() -> None:
    found = errors(AHEAD.replace("NUMBER", "1"))
    assert found
    twice = "arrived twice in one round of barrier 1, at line 6 (k=0, k=1): let the warp wait until"
    assert any(twice in f.missing for f in found)
    assert errors(AHEAD.replace("NUMBER", "1+k")) == []


SHUFFLED = """PTX shuffled
{ .shared .align 128 .u32 store[32]; }
w@cta 0, warp 0 {
  .reg .u32 n, m;
  st.shared.u32 [store + 4*%laneid], 6;
  mov.u32 n, 1;
  shfl.sync.bfly.b32 m, n, 16, 31, 0xffffffff;
  ld.shared.u32 r0, [store + 4*(31 - %laneid)];
}
"""


def test_a_shuffle_orders_no_memory() -> None:
    (found,) = errors(SHUFFLED)
    assert found.missing == (
        "Execute bar.warp.sync 0xffffffff before line 8: shfl.sync at line 7 makes lanes wait for each other, and "
        "orders no memory."
    )
    assert errors(mended(SHUFFLED, found)) == []


RESET = """PTX reset
{ .global .u32 n, seen; }
leader@cta 0 {
  red.release.gpu.global.add.u32 [n], 1;
  await ld.acquire.gpu.global.u32 r0, [n] >= 2;
  WAIT
  st.relaxed.gpu.global.u32 [n], 0;
}
other@cta 1 {
  red.release.gpu.global.add.u32 [n], 1;
  await ld.acquire.gpu.global.u32 r0, [n] >= 2;
  TELL
}
"""


def test_the_store_that_takes_a_value_away_is_named() -> None:
    (found,) = errors(RESET.replace("WAIT", "").replace("TELL", ""))
    assert (
        "line 7 (st.relaxed.gpu.global.u32 [n], 0) of leader overwrote the 2 that would end the wait" in found.message
    )
    assert found.missing.startswith(
        "The write at line 7 takes away what other waits for at line 11: let it wait until other has seen the value, "
        "by a release of other behind line 11 that leader acquires before line 7;"
    )
    assert {s.thread for s in found.trace} == {"leader", "other"}
    tell, wait = "st.release.gpu.global.u32 [seen], 1;", "await ld.acquire.gpu.global.u32 r0, [seen] == 1;"
    assert errors(RESET.replace("WAIT", wait).replace("TELL", tell)) == []


LAMPORT = """PTX lamport
{ .global .u32 buf0 = 0, buf1 = 9; }
one@gpu 1, cta 1, warp 0, lane 0 {
  st.volatile.global.u32 [buf1], 0;
  st.volatile.global.u32 [buf0], 1;
  await ld.volatile.global.u32 r0, [buf1] != 0;
}
zero@gpu 0, cta 0, warp 0, lane 0 {
  await ld.volatile.global.u32 r0, [buf0] != 0;
  st.volatile.global.u32 [buf1], 2;
}
"""


def test_a_store_that_may_come_later_in_coherence_order_lacks_release_and_acquire() -> None:
    (found,) = errors(LAMPORT)
    assert "line 4 (st.volatile.global.u32 [buf1], 0) of one overwrote the 2" in found.message
    assert found.missing.startswith("Execute fence.acq_rel.sys before line 5 and after line 9. Else line 4 may come")
    assert errors(mended(LAMPORT, found)) == []


RING = """PTX ring
{ .global .align 16 .u32 src[64]; .shared .align 16 .u32 buf[8]; }
P@cta 0, warp 0..2, lane 0 {
  cp.async.cg.shared.global [buf + 16*%warpid], [src], 16;
  cp.async.commit_group;
  cp.async.wait_group 0;
  ld.shared.u32 r0, [buf + 16*(1 - %warpid)];
}
"""


def test_a_barrier_that_was_dropped_is_asked_for_and_no_wait() -> None:
    found = errors(RING)
    assert found
    for each in found:
        assert each.missing.startswith("Put a barrier between the wait at line 6 and line 7, ")
        assert errors(mended(RING, each)) == []


INIT = """PTX init
{ .shared .align 16 .u32 x[2]; .shared .b64 b; }
A@cta 0, warp 0..2, lane 0 {
  if (%warpid == 0) { mbarrier.init.shared::cta.b64 [b], COUNT; }
  bar.sync 0;
  st.shared.u32 [x + 4*%warpid], 1;
  mbarrier.arrive.shared::cta.b64 _, [b];
}
B@cta 0, warp 2, lane 0 {
  bar.sync 0;
  await mbarrier.try_wait.parity.shared::cta.b64 [b], 0;
  ld.shared.u32 r0, [x + 4];
}
"""


@pytest.mark.parametrize("count", [1, 3])
def test_the_count_of_an_init_is_blamed_and_no_wait(count: int) -> None:
    found = errors(INIT.replace("COUNT", str(count)))
    told = f"Initialise b@0 at line 4 with count 2 instead of {count}: so many threads arrive on it, at line 7."
    assert any(f.missing.startswith(told) for f in found), [f.missing for f in found]
    assert errors(INIT.replace("COUNT", "2")) == []


CYCLE = """PTX cycle
{ .shared .b64 full, empty; }
producer@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.init.shared::cta.b64 [empty], 1;
  bar.sync 0;
  await mbarrier.try_wait.parity.shared::cta.b64 [empty], 0;
  mbarrier.arrive.shared::cta.b64 _, [full];
}
consumer@cta 0, warp 1, lane 0 {
  bar.sync 0;
  await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;
  mbarrier.arrive.shared::cta.b64 _, [empty];
}
"""


def test_a_deadlock_names_the_cycle() -> None:
    (found,) = errors(CYCLE)
    assert "Still to signal empty@0: consumer at line 13, which is stuck at line 12 on full@0." in found.missing
    assert "Still to signal full@0: producer at line 8, which is stuck at line 7 on empty@0." in found.missing


REFILLED = """PTX refilled
{{
  .global .align 128 .b8 src[512];
  .shared .align 128 .b8 tile[2][128];
  .shared .b64 full[2];
}}
producer@cta 0, warp 0, lane 0 {{
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.init.shared::cta.b64 [full + 8], 1;
  bar.sync 0;
  for k in 0..{rounds} {{
    {copy}
  }}
}}
consumer@cta 0, warp 1, lane 0 {{
  bar.sync 0;
  for k in 0..{rounds} {{
    await mbarrier.try_wait.parity.shared::cta.b64 [full + 8*({stage})], k/2;
    ld.shared.u32 r0, [tile + 128*(k%2)];
  }}
}}
"""
BULK_COPY = """mbarrier.arrive.expect_tx.shared::cta.b64 _, [full + 8*(k%2)], 128;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile + 128*(k%2)], [src], 128, [full + 8*(k%2)];"""
CP_ASYNC = """cp.async.ca.shared.global [tile + 128*(k%2)], [src + 128*k], 4;
    cp.async.mbarrier.arrive.noinc.shared.b64 [full + 8*(k%2)];"""


@pytest.mark.parametrize(
    ("copy", "way"),
    [
        (BULK_COPY, "at line 13: a barrier, or a release that the issuing thread acquires, with fence.proxy.async"),
        (CP_ASYNC, "at line 12: a barrier, or a release that the issuing thread acquires."),
    ],
)
def test_a_read_of_a_stage_that_is_refilled_too_early_belongs_before_the_copy(copy: str, way: str) -> None:
    """The read has waited for its own copy; to wait for the later one would lose what it is to see."""
    found = errors(REFILLED.format(copy=copy, rounds=3, stage="k%2"))
    (read,) = [f for f in found if f.code == "RACE003" and f.accesses[1].thread == "consumer"]
    assert read.missing.startswith(f"Order line 20 before the issue of the operation {way}")


@pytest.mark.parametrize("copy", [BULK_COPY, CP_ASYNC])
def test_who_waits_for_one_phase_twice_has_not_gone_on_to_the_next_stage(copy: str) -> None:
    assert errors(REFILLED.format(copy=copy, rounds=2, stage="k%2")) == []
    reads = [f for f in errors(REFILLED.format(copy=copy, rounds=2, stage="0")) if f.code == "RACE003"]
    assert [f.missing.partition(".")[0] for f in reads] == [
        "Go on to the next stage before line 19: it waits for the phase of full[0]@0 that it has waited for already"
    ]


NEVER_SIGNALLED = """PTX never-signalled
{ .shared .u32 x; .shared .b64 full, empty; }
reader@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.init.shared::cta.b64 [empty], 1;
  await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;
  ld.shared.u32 r0, [x];
  mbarrier.arrive.shared::cta.b64 _, [empty];
}
"""


def test_a_deadlock_names_what_lacks_the_signal() -> None:
    (found,) = errors(NEVER_SIGNALLED)
    come = "Nothing arrived on full@0: who fills what line 7 reads has to arrive on it."
    assert found.missing == f"{come} No thread is left to signal full@0."


def test_a_deadlock_names_the_signal_behind_its_own_wait() -> None:
    (found,) = errors(NEVER_SIGNALLED.replace("_, [empty]", "_, [full]"))
    own = "Only threads that wait for full@0 at line 6 have still to signal it: at line 8."
    assert found.missing == f"Nothing arrived on full@0. {own}"
