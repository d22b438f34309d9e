"""What the answer about a launch says of the clusters that were not executed."""

# ruff: noqa: ISC004
from __future__ import annotations

from typing import Any

import pytest

from mcheck.answers.result import Answer
from mcheck.checking.modules import cluster_groups
from mcheck.checking.run.result import Result
from mcheck.ptx import check

HEAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b)
.reqntid 32, 1, 1
{
  .reg .pred %p<9>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<20>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.s32 %r3, %r1, 32, %r2;
  mul.wide.s32 %rd3, %r3, 4;
  add.s64 %rd4, %rd2, %rd3;
  mul.wide.u32 %rd5, %r2, 4;
  add.s64 %rd6, %rd2, %rd5;
"""


def checked(body: str, *, grid: int = 4, size: int = 4096) -> Result:
    return check(f"{HEAD}{body}  ret;\n}}\n", {"grid": grid, "params": {"a": {"buffer": size}, "b": {"buffer": size}}})


def covers(found: Result) -> tuple[int, int]:
    assert found.covers is not None
    return found.covers.clusters, found.covers.total


APART = {
    "tiles": "st.global.u32 [%rd4], 1;",
    "in-place": "ld.global.u32 %r5, [%rd4]; st.global.u32 [%rd4], %r5;",
    "reads": "ld.global.u32 %r5, [%rd1];",
    "sums": "red.global.add.u32 [%rd6], 1;",
    "masked": "setp.lt.s32 %p1, %r3, 100; @%p1 st.global.u32 [%rd4], 1;",
    "swizzled": "div.u32 %r4, %r1, 2; rem.u32 %r5, %r1, 2; mad.lo.s32 %r6, %r5, 2, %r4;"
    "mad.lo.s32 %r7, %r6, 32, %r2; mul.wide.s32 %rd7, %r7, 4; add.s64 %rd8, %rd2, %rd7; st.global.u32 [%rd8], 1;",
}
OPEN = {
    "counter": (
        "atom.global.add.u32 %r5, [%rd2], 1; mul.wide.u32 %rd7, %r5, 4; "
        "add.s64 %rd8, %rd1, %rd7; ld.global.u32 %r6, [%rd8];",
        "",
        4096,
    ),
    "another way": ("setp.eq.u32 %p1, %r1, 0; @%p1 bra L; bar.sync 0; L:", "take another branch here", 4096),
    "neighbour": ("ld.volatile.global.u32 %r5, [%rd4+128]; st.global.u32 [%rd4], 1;", "reads bytes of b", 4096),
    "sums that are read": ("red.global.add.u32 [%rd6], 1; ld.relaxed.gpu.global.u32 %r5, [%rd6];", "adds to", 4096),
    "narrow sums": ("red.global.cta.add.u32 [%rd6], 1;", "updates bytes of b", 4096),
    "too small": ("st.global.u32 [%rd4], 1;", "in another cluster this may be outside b", 256),
    "not followed": ("xor.b32 %r4, %r3, 5; brev.b32 %r5, %r3; and.b32 %r5, %r5, 255; mul.wide.u32 %rd7, %r5, 4;"
                     "add.s64 %rd8, %rd2, %rd7; st.global.u32 [%rd8], 1;", "depends on %ctaid", 4096),
    "shared": (".shared .b32 s[64]; mov.u32 %r4, s; mad.lo.u32 %r5, %r1, 4, %r4;"
               "st.shared.u32 [%r5], 1;", "", 4096),
}  # fmt: skip

# The numbers of a tile as persistent kernels of CUTLASS compute them: by bits, and by a product with 2^65 / 3.
TILES = {
    "bits": "and.b32 %r4, %r1, 6; shl.b32 %r5, %r1, 3; and.b32 %r5, %r5, 8; and.b32 %r6, %r1, 1048576;"
    "shr.u32 %r4, %r4, 1; or.b32 %r4, %r4, %r6; add.u32 %r4, %r4, %r5; and.b32 %r6, %r1, 24; add.u32 %r4, %r4, %r6;"
    "add.u32 %r4, %r4, %r6;",
    "thirds": "cvt.u64.u32 %rd7, %r1; add.s64 %rd8, %rd7, 1; mul.hi.u64 %rd8, %rd8, 0xAAAAAAAAAAAAAAAA;"
    "shr.u64 %rd8, %rd8, 1; mul.lo.s64 %rd9, %rd8, 3; sub.s64 %rd9, %rd7, %rd9; mul.lo.s64 %rd9, %rd9, 8;"
    "add.s64 %rd9, %rd9, %rd8; cvt.u32.u64 %r4, %rd9;",
}


@pytest.mark.parametrize("name", TILES)
def test_tiles_numbered_by_bits_and_by_upper_halves_keep_apart(name: str) -> None:
    place = "mad.lo.s32 %r7, %r4, 32, %r2; mul.wide.s32 %rd7, %r7, 4; add.s64 %rd8, %rd2, %rd7;"
    found = checked(f"{TILES[name]} {place} st.global.u32 [%rd8], 1;", grid=24, size=1 << 16)
    assert (found.verdict, found.reason) == ("proved", None)
    assert covers(found) == (24, 24)
    assert any("do not conflict with it" in a for a in found.assumptions)


@pytest.mark.daily
@pytest.mark.parametrize("name", APART)
def test_clusters_that_keep_apart_are_proved_for_the_launch(name: str) -> None:
    found = checked(APART[name])
    assert (found.verdict, found.reason) == ("proved", None)
    assert covers(found) == (4, 4)


ANSWERS = {
    "counter": ("bounded", (3, 20)),
    "another way": ("proved", (20, 20)),  # the first cluster is a class, the others are one
    "neighbour": ("RACE001", (1, 20)),
    "sums that are read": ("bounded", (3, 20)),
    "narrow sums": ("RACE001", (1, 20)),
    "too small": ("UB103", (1, 20)),
    "not followed": ("RACE001", (2, 20)),  # all reversed numbers are 0
    "shared": ("proved", (20, 20)),  # each is followed
}


@pytest.mark.daily
@pytest.mark.parametrize("name", OPEN)
def test_what_one_cluster_does_not_show_is_answered_by_others_or_bounded(
    name: str, all_tests: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "sums that are read" and not all_tests:
        monkeypatch.setattr(cluster_groups, "GROUP_SECONDS", 1.0)  # two clusters have too many executions
    body, why, size = OPEN[name]
    found = checked(body, size=size, grid=20)
    answer, covered = ANSWERS[name]
    assert ([f.code for f in found.findings] or [found.verdict]) == [answer]
    assert covers(found) == covered
    if answer == "bounded" and why:
        assert "of 20 clusters of the grid w" in (found.reason or "")
        assert why in (found.reason or "")
    assert checked(body, grid=1).covers is not None


def test_clusters_that_keep_apart_are_not_followed_together_if_classes_take_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    followed: list[int] = []

    def late(module: object, launch: object, first: object, follow: object, *limits: object) -> None:
        del module, launch, first, follow, limits
        raise cluster_groups._ClassesLate

    monkeypatch.setattr(cluster_groups, "answer_by_classes", late)
    monkeypatch.setattr(cluster_groups, "_answer_together", lambda *_: followed.append(1))
    found = checked(OPEN["another way"][0])
    assert (found.verdict, followed) == ("bounded", [])
    assert "following a cluster of each class takes more than 20 s" in (found.reason or "")
    assert found.cut


def test_a_small_grid_is_followed_whole() -> None:
    found = checked(OPEN["shared"][0])
    assert (found.verdict, found.reason) == ("proved", None)
    assert covers(found) == (4, 4)


def test_weak_stores_of_two_clusters_to_the_same_bytes_are_a_race() -> None:
    found = checked("st.global.u32 [%rd6], 1;")
    (race,) = found.findings
    assert (race.code, race.severity) == ("RACE001", "error")
    assert [a.thread for a in race.accesses] == ["CTA (0, 0, 0)", "CTA (1, 0, 0)"]
    assert race.accesses[0].object == "b"
    assert race.accesses[0].bytes == (0, 128)
    assert covers(found) == (1, 4)


def test_where_clusters_can_signal_they_are_followed_together() -> None:
    one = "setp.ne.u32 %p8, %r2, 0; @%p8 bra END;"
    found = checked(f"{one} st.global.u32 [%rd6], 1; st.release.gpu.global.u32 [%rd1], 1; END:")
    assert ({f.code for f in found.findings}, covers(found)) == ({"RACE001"}, (2, 4))
    ordered = f"{one} ld.acquire.gpu.global.u32 %r5, [%rd1]; setp.ne.u32 %p9, %r5, %r1; @%p9 bra END;"
    found = checked(f"{ordered} st.global.u32 [%rd6], 1; st.release.gpu.global.u32 [%rd1], 1; END:")
    assert found.verdict != "finding", "only one cluster finds its number"


MEETING = """and.b32 %r4, %r1, 3; setp.ne.u32 %p1, %r2, 0; setp.ne.u32 %p2, %r2, 32; mul.wide.u32 %rd7, %r1, 64;
  add.u64 %rd7, %rd7, %rd2; mul.wide.u32 %rd8, %r4, 4; add.u64 %rd8, %rd8, %rd7;
  @%p1 bra L; st.global.u32 [%rd8], 1; L: ORDER @%p2 bra M; st.global.u32 [%rd7+AT], 2; M:"""


@pytest.mark.parametrize(
    ("order", "at", "answer"), [("", 8, "RACE001"), ("", 16, "proved"), ("bar.sync 0;", 8, "proved")]
)
def test_accesses_of_one_cluster_that_meet_in_another_cluster_only(order: str, at: int, answer: str) -> None:
    """Words 0 to 3 of a line by ``%ctaid & 3``, and word 2 or 4 by another warp."""
    text = (
        f"{HEAD}{MEETING}  ret;\n}}\n".replace("ORDER", order)
        .replace("AT]", f"{at}]")
        .replace("reqntid 32", "reqntid 64")
    )
    found = check(text, {"grid": 12, "params": {"a": {"buffer": 64}, "b": {"buffer": 12 * 64}}})
    assert ([f.code for f in found.findings] or [found.verdict]) == [answer]
    assert answer != "proved" or covers(found) == (12, 12)


EARLY = {
    "load": ("ld.global.u32 %r5, [%rd1];", "read"),
    "store": ("st.global.u32 [%rd4], 1;", "written"),
    "sum": ("red.global.add.u32 [%rd4], 1;", "written"),
    "copy": ((".shared .align 16 .b8 s[16]; mov.u32 %r9, s; cp.async.cg.shared.global [%r9], [%rd1], 16;"
             "cp.async.wait_all;"), "read"),
}  # fmt: skip


@pytest.mark.daily
@pytest.mark.parametrize("name", EARLY)
def test_what_is_accessed_before_the_grids_before_have_ended(name: str) -> None:
    body, done = EARLY[name]
    one = "setp.ne.u32 %p8, %r2, 0; @%p8 bra END;"
    found = checked(f"{one} {body} griddepcontrol.wait; END:", grid=1)
    (early,) = (f for f in found.findings if f.code == "RACE011")
    assert early.severity == "review"
    assert f"is {done} before the griddepcontrol.wait" in early.message
    assert not checked(f"{one} griddepcontrol.wait; {body} END:", grid=1).findings
    assert not checked(f"{one} {body} griddepcontrol.launch_dependents; END:", grid=1).findings


def test_prefetches_and_shared_memory_may_come_before_the_wait() -> None:
    body = ".shared .b32 s; prefetch.global.L2 [%rd1]; bar.warp.sync -1; st.shared.u32 [s], 1; griddepcontrol.wait;"
    found = checked(body.replace("st.shared", "setp.eq.u32 %p1, %r2, 0; @%p1 st.shared"), grid=1)
    assert (found.verdict, found.findings) == ("proved", ())


LOCAL = ".local .align 8 .b8 own[8]; st.local.u32 [own], 0; st.local.u32 [own+4], 0; mov.u64 %rd9, own;"
GENERIC = f"{LOCAL} cvta.local.u64 %rd9, %rd9;"
ODD = "and.b32 %r9, %r1, 1; setp.eq.u32 %p1, %r9, 1; mul.wide.u32 %rd10, %r9, 4; add.u64 %rd10, %rd9, %rd10;"
PRIVATE = {
    "place": f"{LOCAL} {ODD} st.local.u32 [%rd10], 1; ld.local.u32 %r5, [own+4];",
    "guard": f"{LOCAL} {ODD} @%p1 st.local.u32 [own], 1; ld.local.u32 %r5, [own];",
    "generic place": f"{GENERIC} {ODD} st.u32 [%rd10], 1; ld.local.u32 %r5, [own+4];",
    "generic guard": f"{GENERIC} {ODD} @%p1 st.u32 [%rd9], 1; ld.local.u32 %r5, [own];",
    "generic value": f"{GENERIC} {ODD} st.u32 [%rd9], %r9; ld.local.u32 %r5, [own];",
    "shared guard": f".shared .u32 s; st.shared.u32 [s], 0; {ODD} @%p1 st.shared.u32 [s], 1; ld.shared.u32 %r5, [s];",
}


@pytest.mark.daily
@pytest.mark.parametrize("name", PRIVATE)
def test_what_is_stored_before_can_depend_on_the_coordinates(name: str) -> None:
    """CTAs with odd numbers write to one word, because of what they stored before."""
    found = checked(
        f"{PRIVATE[name]} setp.eq.u32 %p2, %r5, 0; setp.ne.u32 %p3, %r2, 0;"
        "@%p2 bra END; @%p3 bra END; st.global.u32 [%rd2], 1; END:"
    )
    assert [f.code for f in found.findings] == ["RACE001"]


def test_a_generic_store_to_local_memory_is_read_back() -> None:
    body = f"{GENERIC} st.u32 [%rd9], 1; ld.local.u32 %r5, [own]; setp.eq.u32 %p2, %r5, 0; @%p2 bra END;"
    assert [f.code for f in checked(f"{body} st.global.u32 [%rd2+4096], 1; END:", grid=1).findings] == ["UB103"]


@pytest.mark.daily(days=3)
@pytest.mark.parametrize("before", [4, 64, 4096])
def test_an_access_before_the_first_buffer_is_outside(before: int) -> None:
    for body in (f"st.global.u32 [%rd1+-{before}], 1;", f"ld.global.u32 %r5, [%rd1+-{before}];"):
        assert {f.code for f in checked(body, grid=1).findings} == {"UB103"}


FEW = {
    "one": ("setp.eq.u32 %p1, %r1, 7; @%p1 st.global.u32 [%rd6], 1;", "proved"),
    "two": ("setp.eq.u32 %p1, %r1, 7; setp.eq.u32 %p2, %r1, 13; @%p1 st.global.u32 [%rd6], 1;"
            "@%p2 st.global.u32 [%rd6], 1;", "RACE001"),
    "either": ("setp.eq.u32 %p1, %r1, 7; setp.eq.or.u32 %p2, %r1, 13, %p1; @%p2 st.global.u32 [%rd6], 1;", "RACE001"),
    "both": ("setp.eq.u32 %p1, %r1, 7; setp.eq.and.u32 %p2, %r1, 13, %p1; @%p2 st.global.u32 [%rd6], 1;", "proved"),
    "first": ("setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [%rd6], 1;", "proved"),
}  # fmt: skip


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("name", FEW)
def test_a_guard_that_holds_in_few_clusters(name: str) -> None:
    body, answer = FEW[name]
    found = checked(body, grid=20)
    assert ([f.code for f in found.findings] or [found.verdict]) == [answer]
    assert answer != "proved" or covers(found) == (20, 20)


SIGNALLED = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry k()
.reqntid 32, 1, 1
.reqnctapercluster 2
{
  .reg .pred %p<6>;
  .reg .b32 %r<8>;
  .shared .align 16 .b8 buf[16];
  .shared .align 8 .b64 full;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  mov.u32 %r2, %clusterid.x;
  setp.eq.u32 %p2, %r2, 0;
  mov.u32 %r3, %cluster_ctarank;
  xor.b32 %r3, %r3, 1;
  mapa.shared::cluster.u32 %r4, buf, %r3;
  mapa.shared::cluster.u32 %r5, full, %r3;
  @%p1 bra MEET;
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 4;
  fence.mbarrier_init.release.cluster;
MEET:
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  @%p1 bra OUT;
  SIGNAL
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;
  @!%p3 bra WAIT;
OUT:
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  ret;
}
"""


@pytest.mark.daily(days=3)
@pytest.mark.parametrize(
    "signal",
    [
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r4], %r1, [%r5];",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r4], 1, [%r5];",
    ],
)
def test_bytes_that_only_one_cluster_sends_are_missed_in_the_other(signal: str) -> None:
    """A guard of the coordinates may leave out weak accesses, but none that an mbarrier counts."""
    proved = check(SIGNALLED.replace("SIGNAL", signal), {"grid": 4})
    assert str(proved.verdict) == "proved", (proved.problem, proved.reason, proved.findings)
    found = check(SIGNALLED.replace("SIGNAL", f"@%p2 {signal}"), {"grid": 4})
    assert {f.code for f in found.findings} == {"DEAD003"}, (found.verdict, found.reason)


def test_a_fill_that_only_one_cluster_does_decides_what_the_others_do() -> None:
    fill = "st.shared.u32 [buf], 1; GUARD st.bulk.weak.shared::cta [buf], 16, 0; ld.shared.u32 %r6, [buf];"
    text = SIGNALLED.replace("SIGNAL", fill + " setp.ne.u32 %p4, %r6, 0; @!%p4 bra OUT;")
    assert str(check(text.replace("GUARD", ""), {"grid": 4}).verdict) == "proved"
    found = check(text.replace("GUARD", "@%p2"), {"grid": 4})
    assert {f.code for f in found.findings} == {"DEAD003"}, (found.verdict, found.reason)


BARRIER = """st.global.u32 [%rd4], 1;
  bar.sync 0;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra MET;
  atom.add.release.gpu.global.u32 %r5, [%rd1], 1;
AGAIN:
  ld.acquire.gpu.global.u32 %r6, [%rd1];
  setp.lt.u32 %p2, %r6, 2;
  @%p2 bra AGAIN;
MET:
  bar.sync 0;
  xor.b32 %r7, %r3, 32;
  mul.wide.u32 %rd7, %r7, 4;
  add.s64 %rd8, %rd2, %rd7;
  ld.global.u32 %r8, [%rd8];
"""


@pytest.mark.daily(one_of="pairs")
@pytest.mark.parametrize(
    ("body", "cooperative", "kinds", "times"),
    [
        pytest.param(BARRIER, True, set(), 1, id="pairs-prove-it"),
        pytest.param(BARRIER, False, {"deadlock"}, 2, id="nobody-promises-that-both-run"),
        pytest.param(BARRIER.replace(".release", ".relaxed"), True, {"race"}, 2, id="nothing-is-released"),
    ],
)
def test_of_clusters_that_wait_for_each_other_pairs_are_asked_about_before_the_time_for_groups_is_over(
    body: str, cooperative: bool, kinds: set[str], times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = cluster_groups._answer_together
    limits: list[object] = []

    def follow(launch: Any, first: Any, follow: Any, question: Any, limit: Any) -> Answer:
        limits.append(limit)
        return together(launch, first, follow, question, limit)

    monkeypatch.setattr(cluster_groups, "_answer_together", follow)
    monkeypatch.setattr(cluster_groups, "WAITING_SECONDS", 0.0)
    word, data = {"buffer": 4, "init": {"hex": "00000000"}}, {"buffer": 256}
    given = {"grid": [2], "block": [32], "cooperative": cooperative, "params": {"a": word, "b": data}}
    found = check(f"{HEAD}{body}  ret;\n}}\n", given)
    assert found.verdict == ("finding" if kinds else "proved")
    assert {f.kind for f in found.findings} == kinds
    assert len(limits) == times


def test_the_first_cluster_is_followed_where_the_launch_names_another_one() -> None:
    body = (
        ".shared .b32 s[4]; brev.b32 %r4, %r1; shr.u32 %r5, %r4, 30; mul.wide.u32 %rd7, %r5, 4; add.s64 %rd8, %rd2,"
        "%rd7; setp.eq.u32 %p2, %r2, 0; @%p2 st.global.u32 [%rd8], 1; setp.eq.u32 %p1, %r5, 0;"
        "setp.eq.and.u32 %p3, %r2, 0, %p1; setp.eq.and.u32 %p4, %r2, 1, %p1;"
        "@%p3 st.shared.u32 [s], 1; @%p4 ld.shared.u32 %r6, [s];"
    )
    launch = {"grid": 4, "first": [2, 0, 0], "params": {"a": {"buffer": 4096}, "b": {"buffer": 4096}}}
    found = check(f"{HEAD}{body}  ret;\n}}\n", launch)
    assert [f.code for f in found.findings] == ["RACE001"]
