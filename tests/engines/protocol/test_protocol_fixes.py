"""What a finding says is missing is carried out where it says, until nothing can be, and the sketch is clean."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from mcheck.cat import load_model
from mcheck.engines.protocol import exploration
from mcheck.engines.protocol.exploration import Search
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.fix_search.trials import IsFix, Trial
from mcheck.findings.finding import Finding
from mcheck.findings.fix import IdleWait, Insert
from mcheck.findings.groups import causes, group_findings
from mcheck.findings.repair import apply_edits, make_edits
from mcheck.frontend.litmus import parse
from mcheck.ir.amendment import apply_amendments

KERNELS = Path(__file__).parents[3] / "litmus" / "kernels"
BUGS = [
    row["file"]
    for row in csv.DictReader((KERNELS / "index.csv").read_text(encoding="utf-8").splitlines())
    if row["twin"]
]
WITHOUT = frozenset((Path(__file__).parent / "without_remedy.txt").read_text(encoding="utf-8").split())
"""Sketches whose findings name no instruction to insert: a count, a parity, a place is wrong."""


def errors(text: str) -> list[Finding]:
    found = check(parse(text, "mended.litmus"), load_model("ptx-9.0"), timeout=60).findings
    return [f for f in found if f.severity == "error"]


def mended(text: str, finding: Finding) -> str | None:
    """The text with the remedy of the finding carried out, ``None`` if it names none for a place."""
    lines = text.split("\n")
    changes = make_edits(finding.fixes, lines)
    return "\n".join(apply_edits(lines, changes)) if changes else None


def test_many_findings_name_instruction_and_place() -> None:
    """Those of all sketches but the listed ones do, as the test below holds them to."""
    assert set(BUGS) >= WITHOUT
    assert len(set(BUGS) - WITHOUT) >= 30


@pytest.mark.daily
@pytest.mark.parametrize("name", BUGS)
def test_the_remedy_mends_the_sketch(name: str) -> None:
    text = (KERNELS / name).read_text(encoding="utf-8")
    tried = 0
    while tried < 6:
        left = errors(text)
        better = next((t for t in (mended(text, e) for e in left) if t is not None), None)
        if better is None:
            break
        text, tried = better, tried + 1
    assert bool(tried) is (name not in WITHOUT)
    if not tried:
        return
    assert left == []


WGMMA = """PTX wgmma-without-its-fence
{
  .global .align 128 .b8 src[512];
  .shared .align 128 .b8 a[512];
  .shared .align 8 .b64 full;
}
P@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 512;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [a], [src], 512, [full];
  WAIT
  WRITE
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {r0, r1, r2, r3}, [a, 512], [a, 512];
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
}
"""
WAIT = "await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;"


@pytest.mark.parametrize(
    ("write", "after"),
    [("", "after what hands line 10 over"), ("st.shared.u32 [a], 1; fence.proxy.async;", "after line 12")],
    ids=["copied", "stored"],
)
def test_a_wgmma_without_its_fence_is_told_so(write: str, after: str) -> None:
    """Its reads are asynchronous also where nothing orders anything before them (8.9.1.1)."""
    found = errors(text := WGMMA.replace("WAIT", WAIT).replace("WRITE", write))
    assert {e.code for e in found} == {"RACE003"}
    assert any(f"Execute wgmma.fence.sync.aligned before line 13, {after}." in e.missing for e in found)
    for each in found:
        changed = mended(text, each)
        assert changed is not None
        assert errors(changed) == []


def test_the_phase_to_wait_for_is_the_one_that_the_copy_completes() -> None:
    (found,) = errors(WGMMA.replace("WAIT", "").replace("WRITE", "wgmma.fence.sync.aligned;"))
    assert "Wait for phase 0 (parity 0) of full@0" in found.missing


def test_a_relaxed_wait_for_a_copy_is_told_so() -> None:
    text = WGMMA.replace("WAIT", WAIT.replace("parity.shared", "parity.relaxed.cta.shared"))
    text = text.replace("WRITE", "wgmma.fence.sync.aligned; ld.shared.u32 r0, [a];")
    found = next(e for e in errors(text) if "relaxed" in e.missing)
    assert "Execute fence.acquire.cta after line 11, whose wait is relaxed" in found.missing
    changed = mended(text, found)
    assert changed is not None
    assert errors(changed) == []


RELAXED = """PTX relaxed-arrival
{ .shared .u32 x; .shared .align 8 .b64 bar; }
P@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  bar.sync 0;
  st.shared.u32 [x], 1;
  mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bar];
}
Q@cta 0, warp 1, lane 0 {
  bar.sync 0;
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
  ld.shared.u32 r0, [x];
}
"""


def test_what_comes_after_in_time_alone_is_told_so() -> None:
    """Not that the one knows of what stands behind the access, which it does."""
    (found,) = errors(RELAXED)
    assert found.missing.startswith("Execute fence.acq_rel.cta before line 7, or make the arrive of line 7 .rel")
    lines = RELAXED.split("\n")
    assert errors("\n".join(apply_edits(lines, make_edits(found.fixes, lines)))) == []
    assert errors(RELAXED.replace("arrive.relaxed.cta", "arrive.release.cta")) == []
    (before,) = errors(RELAXED.replace("  st.shared", "  bar.warp.sync 1;\n  st.shared").replace("await", "// await"))
    assert "What P knows of Q ends with line 11 (bar.sync 0, " in before.missing


MAP = """PTX map-in-two-threads
{
  .global .align 16 .u32 one[4], two[4];
  .global .u32 flag;
  .global .tensormap other = { global_address = two, elemtype = u32, rank = 1, global_dim = {4}, global_stride = {},
    box_dim = {4}, element_stride = {1}, interleave_layout = none, swizzle_mode = none, swizzle_atomicity = 16B,
    fill_mode = zero };
  .global .tensormap tm = { global_address = one, elemtype = u32, rank = 1, global_dim = {4}, global_stride = {},
    box_dim = {4}, element_stride = {1}, interleave_layout = none, swizzle_mode = none, swizzle_atomicity = 16B,
    fill_mode = zero };
  .shared .align 128 .u32 buf[4];
  .shared .align 8 .b64 full;
}
writer@cta 0, warp 0, lane 0 {
  tensormap.replace.tile.global_address.global.b1024.b64 [tm], two;
  fence.proxy.tensormap::generic.release.gpu;
  st.release.gpu.global.u32 [flag], 1;
}
reader@cta 1, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
  await ld.acquire.gpu.global.u32 r0, [flag] == 1;
  fence.proxy.tensormap::generic.acquire.gpu [tm], 128;
  cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [buf], [tm, {0}], [full];
  await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;
}
"""
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [tm], 128"
AWAIT = "await ld.acquire.gpu.global.u32 r0, [flag] == 1;"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("generic.release.gpu", "generic.release.cta", "Give scope .gpu instead of .cta at line 16;"),
        ("generic.acquire.gpu", "generic.acquire.cluster", "Give scope .gpu instead of .cluster at line 23;"),
        (ACQUIRE, "", f"Execute {ACQUIRE} before line 24;"),
        (
            "acquire.gpu [tm]",
            "acquire.gpu [other]",
            f"Execute {ACQUIRE} before line 24, for the one at line 23 names another",
        ),
        (
            f"{AWAIT}\n  {ACQUIRE};",
            f"{ACQUIRE};\n  {AWAIT}",
            "for the one at line 22 comes before what writer hands over",
        ),
    ],
    ids=["release-scope", "acquire-scope", "no-acquire", "other-map", "early"],
)
def test_why_a_half_of_a_tensormap_fence_does_not_count(old: str, new: str, said: str) -> None:
    assert errors(MAP) == []
    assert old in MAP
    (found,) = errors(MAP.replace(old, new))
    assert found.code == "RACE009"
    assert said in found.missing


def test_bytes_that_nobody_announced_are_named_by_their_lines() -> None:
    """A box that leaves its tensor counts in full (PTX ISA 5.5.3)."""
    text = (
        MAP[: MAP.index("writer@")]
        + """loader@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 8;
  cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [buf], [tm, {4}], [full];
}
"""
    )
    found = next(e for e in errors(text) if e.code == "UB216")
    line = text.split("\n").index("  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 8;") + 1
    assert f"Expect 16 bytes at line {line} instead of 8: line {line + 1} completes 16" in found.missing
    assert "A tensor copy completes its whole box" in found.missing


TWO_COPIES = """PTX two-copies
{{ .shared .b64 full[2]; .shared .align 16 .b8 a[128], b[64]; .global .align 16 .b8 src[128]; }}
P@cta 0, warp 0, lane 0 {{
  for k in 0..2 {{ mbarrier.init.shared::cta.b64 [full + 8*k], 1; }}
  for k in 0..2 {{
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [a + 64*k], [src], 64, [full + 8*k];
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [b + 32*k], [src], 32, [full + 8*k];
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full + 8*k], {bytes};
  }}
  for k in 0..2 {{ await mbarrier.try_wait.parity.shared::cta.b64 [full + 8*k], 0; }}
}}
"""


@pytest.mark.parametrize("number", [32, 128])
def test_a_wrong_number_of_bytes_is_one_bug_at_the_line_that_announces_it(number: int) -> None:
    found = errors(TWO_COPIES.format(bytes=number))
    (bug,) = causes(group_findings(found))
    first = found[bug.members[0]]
    assert first.missing.startswith(f"Expect 96 bytes at line 8 instead of {number}: line 6 completes 64 and line 7 ")
    assert first.code == "DEAD003" or first.accesses[1].line == 8


RING = """PTX ring
{ .shared .align 16 .b8 buf[1536]; .global .align 16 .b8 src[512]; }
P@cta 0, warp 0 {
  for s in 0..2 {
    cp.async.cg.shared.global [buf + 512*s + 16*%laneid], [src + 16*%laneid], 16;
    cp.async.commit_group;
  }
  cp.async.wait_group 1;
  bar.warp.sync 0xffffffff;
  for k in 0..2 {
    cp.async.cg.shared.global [buf + 512*((k+2)%3) + 16*%laneid], [src + 16*%laneid], 16;
    cp.async.commit_group;
    ld.shared.u32 r0, [buf + 512*(k%3) + 16*(31 - %laneid)];
    cp.async.wait_group 2;
    bar.warp.sync 0xffffffff;
  }
}
"""


def test_the_wait_that_leaves_a_copy_in_flight_is_the_last_one_before_the_read() -> None:
    found = errors(RING)
    waits = {note.at.line for f in found for fix in f.fixes for note in fix.notes if isinstance(note, IdleWait)}
    assert waits == {14}


def test_a_commit_that_is_missing_before_the_wait_is_named() -> None:
    text = RING.replace("    cp.async.commit_group;\n", "").replace("wait_group 2", "wait_group 1")
    found = errors(text)
    (bug,) = causes(group_findings(found))
    assert found[bug.members[0]].missing.startswith("Execute cp.async.commit_group after line 5. The wait at line 7")


LAST_ROUNDS = """PTX last_rounds
{ .shared .align 16 .b8 buf[1536]; .global .align 16 .b8 src[2048]; }
P@cta 0, warp 0 {
  for k in 0..2 {
    cp.async.cg.shared.global [buf + 512*k + 16*%laneid], [src + 512*k + 16*%laneid], 16;
    cp.async.commit_group;
  }
  for k in 0..4 {
    cp.async.wait_group 1;
    bar.warp.sync 0xffffffff;
    if (k < 2) {
      cp.async.cg.shared.global [buf + 512*((k+2)%3) + 16*%laneid], [src + 512*(k+2) + 16*%laneid], 16;
    }
    ld.shared.u32 r0, [buf + 512*(k%3) + 16*(31 - %laneid)];
  }
}
"""


def test_a_commit_closes_a_group_in_each_round_that_waits() -> None:
    """Behind the copy it would close none in the last rounds, whose waits leave one group pending."""
    found = errors(LAST_ROUNDS)
    (bug,) = causes(group_findings(found))
    lines = LAST_ROUNDS.split("\n")
    edits = make_edits(found[bug.members[0]].fixes, lines)
    assert [(edit.line, edit.text.strip()) for edit in edits] == [(14, "cp.async.commit_group;")]
    assert not errors("\n".join(apply_edits(lines, edits)))


ROUNDS = """PTX rounds
{ .shared .align 16 .b8 a[64], b[64]; .global .align 16 .b8 src[64]; }
both@cta 0, warp 0..2, lane 0 {
  cp.async.ca.shared.global [a + 16*%warpid], [src + 16*%warpid], 16;
  FIRST
  cp.async.ca.shared.global [b + 16*%warpid], [src + 16*%warpid], 16;
  cp.async.wait_all;
  SECOND
  ld.shared.u32 r0, [a + 16*(1 - %warpid)];
  ld.shared.u32 r0, [b + 16*(1 - %warpid)];
}
"""


def bugs_of(text: str) -> int:
    return len(causes(group_findings(errors(text))))


def test_one_barrier_that_two_buffers_lack_is_one_bug() -> None:
    assert bugs_of(ROUNDS.replace("FIRST", "").replace("SECOND", "")) == 1
    assert bugs_of(ROUNDS.replace("FIRST", "").replace("SECOND", "bar.sync 0, 64;")) == 0


def test_two_barriers_that_two_buffers_lack_are_two_bugs() -> None:
    text = ROUNDS.replace("SECOND\n  ld.shared.u32 r0, [a + 16*(1 - %warpid)];", "SECOND")
    first = "cp.async.wait_all;\n  {}\n  ld.shared.u32 r0, [a + 16*(1 - %warpid)];"
    barrier = "bar.sync 0, 64;"
    assert bugs_of(text.replace("FIRST", first.format("")).replace("SECOND", "")) == 2
    assert bugs_of(text.replace("FIRST", first.format(barrier)).replace("SECOND", "")) == 1


def test_an_address_that_is_a_number_is_not_told_by_an_object_in_shared_memory() -> None:
    (found,) = errors("PTX number\n{ .shared .u32 x; }\nP@cta 0 { st.global.u32 [8192], 1; }\n")
    assert found.code == "UB103"
    assert "its address is the number 0x2000" in found.message


UNORDERED = """PTX many-unordered-pairs
{ .shared .u32 x[2], y[2], z[2]; }
both@cta 0, warp 0..2, lane 0 {
  st.shared.u32 [x + 4*%warpid], 1;
  st.shared.u32 [y + 4*%warpid], 1;
  st.shared.u32 [z + 4*%warpid], 1;
  ld.shared.u32 r0, [x + 4*(1 - %warpid)];
  ld.shared.u32 r0, [y + 4*(1 - %warpid)];
  ld.shared.u32 r0, [z + 4*(1 - %warpid)];
}
"""
CHOICE = """PTX two-orders
{ .shared .u32 x, y; }
first@cta 0, warp 0, lane 0 {
  st.shared.u32 [x], 1;
  atom.shared.add.u32 r0, [y], 1;
}
second@cta 0, warp 1, lane 0 {
  st.shared.u32 [x], 2;
  atom.shared.add.u32 r0, [y], 2;
  @%p1 st.shared.u32 [x], r0;
}
"""


def search(text: str = UNORDERED) -> Search:
    found = Search(parse(text, "many.litmus"), load_model("ptx-9.0"), "ptx", 2)
    assert found.explore(60) is None
    return found


def test_no_program_is_edited_once_the_steps_for_trials_are_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the many pairs of a long program would cost an edit of all its threads for nothing."""
    edits = []
    monkeypatch.setattr(exploration, "apply_amendments", lambda *edit: edits.append(edit) or apply_amendments(*edit))
    everything = search()
    assert edits
    edits.clear()
    monkeypatch.setattr(exploration, "MAX_FIX_STEPS", -1)
    assert search().findings.keys() == everything.findings.keys()
    assert len(everything.findings) >= 3
    assert not edits


def test_after_an_error_no_execution_follows_that_is_longer_than_all_that_may_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert search(CHOICE).executions > 1
    monkeypatch.setattr(exploration, "STEPS_AFTER_FINDING", 3)
    found = search(CHOICE)
    assert found.errors
    assert found.executions == 1


MISSED = """PTX missed
"products are signalled twice more before another thread waits for the first"
{
  .tensor .b32 acc[128][32];
  .shared .align 16 .b8 a[32], b[32];
  .shared .b64 done, all;
  .shared .b32 base;
}
P@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [done], 1;
  mbarrier.init.shared::cta.b64 [all], 1;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 32;
  bar.sync 0;
  tcgen05.mma.cta_group::1.kind::f16 [acc, 16384], [a, 32], [b, 32];
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
  await mbarrier.try_wait.parity.shared::cta.b64 [done], 0;
  tcgen05.mma.cta_group::1.kind::f16 [acc, 16384], [a, 32], [b, 32];
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [all];
  await mbarrier.try_wait.parity.shared::cta.b64 [all], 0;
  bar.sync 0;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 acc, 32;
}
Q@cta 0, warp 1, lane 0 {
  bar.sync 0;
  await mbarrier.try_wait.parity.shared::cta.b64 [done], 0;
  bar.sync 0;
}
"""


def test_no_arrival_is_suggested_for_a_phase_that_a_waiter_has_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more commit would let it go on, whatever phase that then is: every trial is taken for a success here."""
    monkeypatch.setattr(Search, "_make_fix_check", lambda *_: lambda _: True)
    (found,) = errors(MISSED)
    assert "Phase 0 of done@0 and the next one completed before" in found.missing
    assert "Nothing signals" not in found.missing


HANDED = """PTX handed
"a flag by relaxed accesses"
{ .global .b32 data, flag; }
giver@cta 0, warp 0, lane 0 { st.global.u32 [data], 1; st.relaxed.gpu.global.u32 [flag], 1; }
taker@cta 1, warp 0, lane 0 { await ld.relaxed.gpu.global.u32 r0, [flag] == 1; ld.global.u32 r1, [data]; }
"""


@pytest.mark.parametrize(
    ("all_of_them", "fewer", "fences"),
    [
        (Trial(passed=True, executions=32), Trial(passed=True, executions=14), 2),
        (Trial(passed=True, executions=32), Trial(passed=True, executions=32), 1),
        (Trial(passed=True, executions=5, whole=True), Trial(passed=True, executions=32), 2),
        (Trial(passed=True, executions=32), Trial(passed=True, executions=3, whole=True), 1),
    ],
)
def test_no_fence_is_left_out_for_which_less_speaks(
    monkeypatch: pytest.MonkeyPatch, all_of_them: Trial, fewer: Trial, fences: int
) -> None:
    """One execution among those that were not tried may need it."""

    def check_of_fixes(self: Search, finding: Finding) -> IsFix:
        return IsFix(lambda amendments: all_of_them if len(amendments) == 2 else fewer, set(), finding)

    monkeypatch.setattr(Search, "_make_fix_check", check_of_fixes)
    ((fix,),) = [error.fixes for error in errors(HANDED)]
    (step,) = fix.steps
    assert isinstance(step, Insert)
    assert len(step.points) == fences
    last = all_of_them if fences == 2 else fewer
    said = f"Tried on {last.executions} executions; others may lack more"
    assert [note.text for note in fix.notes] == ([] if last.whole else [(said,)])


WRITTEN_AGAIN = """PTX written_again
{ .global .align 128 .b8 dst[256]; .shared .align 128 .b8 buf[128]; }
P@cta 0, warp 0..2, lane 0 {
  for k in 0..2 {
    bar.sync 0;
    st.shared.u32 [buf + 4*%warpid], k;
    fence.proxy.async;
    bar.sync 0;
    if (%warpid == 1) {
      cp.async.bulk.global.shared::cta.bulk_group [dst + 128*k], [buf], 16;
      cp.async.bulk.commit_group;
    }
  }
  cp.async.bulk.wait_group 0;
}
"""


def test_a_wait_for_what_others_write_as_well_stands_before_the_barrier() -> None:
    """Before its own write it would cover the issuing thread alone."""
    found = errors(WRITTEN_AGAIN)
    own = next(f for f in found if len({access.thread for access in f.accesses}) == 1)
    assert own.missing.startswith("Execute cp.async.bulk.wait_group.read 0 before line 5, which hands the bytes over")
    lines = WRITTEN_AGAIN.split("\n")
    assert not errors("\n".join(apply_edits(lines, make_edits(own.fixes, lines))))
