"""What findings say is missing: the same whichever command says it, and nothing beside the point."""

from __future__ import annotations

import pytest

from mcheck.checking.check.command import check_case
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.inquiry import run_case
from mcheck.findings.groups import causes, group_findings

STORED = """PTX stored-and-read
{{ .global .align 16 .u32 dst[4]; .shared .align 16 .u32 buf[4]; }}
P@cta 0 {{
  st.shared.u32 [buf], 1;
  fence.proxy.async.shared::cta;
  cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 16;
  {commit}
  cp.async.bulk.wait_group{wait};
  ld.global.u32 r0, [dst];
}}
exists (P:r0 == 1)
expect race
"""
COMMIT = "cp.async.bulk.commit_group;"


@pytest.mark.daily
@pytest.mark.parametrize(
    ("commit", "wait", "says"),
    [
        (COMMIT, ".read 0", "Execute cp.async.bulk.wait_group 0 before line 9. The wait at line 8 has .read"),
        (
            COMMIT,
            " 1",
            "Execute cp.async.bulk.wait_group 0 instead of 1 at line 8. The wait at line 8 leaves the latest group",
        ),
        (
            "",
            " 0",
            "Execute cp.async.bulk.commit_group after line 6. The wait at line 8 does not cover the operation",
        ),
    ],
)
def test_run_and_check_advise_alike(commit: str, wait: str, says: str) -> None:
    case = Case("stored.litmus", text=STORED.format(commit=commit, wait=wait))
    ran, checked = run_case(case, Settings()), check_case(case, Settings(), Options())
    told = [next(f.missing for f in found if f.code == "RACE003") for found in (ran.findings, checked.findings)]
    assert told[0].startswith(says)
    assert told[0] == told[1]


STAGED = """PTX staged
{{ .global .align 128 .u32 dst[32]; .shared .align 128 .u32 buf[32]; }}
P@cta 0, warp 0 {{
  st.shared.u32 [buf + 4*%laneid], 1;
  {fence}
  bar.warp.sync 0xffffffff;
  if (%laneid == 0) {{
    cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 128;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
  }}
}}
"""


def test_why_the_fence_of_another_lane_is_not_enough() -> None:
    text = STAGED.format(fence="if (%laneid == 3) { fence.proxy.async.shared::cta; }")
    checked = check_case(Case("staged.litmus", text=text), Settings(), Options())
    told = next(f.missing for f in checked.findings if f.code == "RACE004")
    assert "is executed by P[3]: it covers what that thread wrote or took over, not this write of P[0]." in told


PIPELINE = """PTX pipeline
{{ .global .align 128 .u32 src[16]; .shared .align 128 .u32 buf[16]; }}
P@cta 0 {{
  for k in 0..2 {{
    {copy} [buf + 16*k], [src + 16*k], 16;
    {commit};
  }}
  for k in 0..2 {{
    {copy} [buf + 16*(k+2)], [src + 16*(k+2)], 16;
    {commit};
    {wait}
    ld.shared.u32 r0, [buf + 16*k];
  }}
}}
"""
FAMILIES = {
    "cp.async": ("cp.async.cg.shared.global", "cp.async.commit_group", "cp.async.wait_group"),
    "stores": ("cp.async.bulk.global.shared::cta.bulk_group", "cp.async.bulk.commit_group", "cp.async.bulk.wait_group"),
}


def pipeline(family: str, wait: str) -> Case:
    copy, commit, _ = FAMILIES[family]
    text = PIPELINE.format(copy=copy, commit=commit, wait=wait)
    if family == "stores":  # from shared memory, whose slot is written again
        text = text.replace("[buf", "[_").replace("[src", "[buf").replace("[_", "[src")
        text = text.replace("ld.shared.u32 r0, [src + 16*k];", "st.shared.u32 [buf + 16*k], 1;")
    return Case("pipeline.litmus", text=text)


@pytest.mark.daily(days=3)
@pytest.mark.parametrize("family", FAMILIES)
def test_groups_behind_the_one_waited_for_go_on(family: str) -> None:
    wait, half = FAMILIES[family][2], ".read" if family == "stores" else ""
    case = pipeline(family, "")
    for found in (run_case(case, Settings()).findings, check_case(case, Settings(), Options()).findings):
        told = next(f.missing for f in found if f.code == "RACE003")
        assert told.startswith(f"Execute {wait}{half} 2 before line 12. Leave fewer groups pending where fewer follow")
    for pending, codes in ((2, set()), (3, {"RACE003"})):
        checked = check_case(pipeline(family, f"{wait}{half} {pending};"), Settings(), Options())
        assert {f.code for f in checked.findings} - {"RACE005", "UB501"} == codes


HANDED = """PTX handed
{ .global .align 128 .u32 src[256]; .shared .align 128 .u32 buf[256]; }
P@cta 0, warp 0..1 {
  for k in 0..2 {
    if (%warpid == 0) { cp.async.cg.shared.global [buf + 512*(k%2) + 16*%laneid], [src + 512*(k%2) + 16*%laneid], 16; }
    cp.async.commit_group;
  }
  cp.async.commit_group;
  bar.sync 0;
  ld.shared.u32 r0, [buf + 4*%laneid];
  bar.sync 1;
}
"""


def test_groups_behind_go_on_where_a_barrier_hands_over() -> None:
    case = Case("handed.litmus", text=HANDED)
    found = check_case(case, Settings(), Options()).findings
    told = [f.missing for f in found if f.code == "RACE003"]
    assert told
    assert all(t.startswith("Execute cp.async.wait_group 2 before line 9, which hands the bytes over.") for t in told)
    mended = HANDED.replace("  bar.sync 0;", "  cp.async.wait_group 2;\n  bar.sync 0;")
    assert check_case(Case("handed.litmus", text=mended), Settings(), Options()).verdict == "proved"


REFILLED = """PTX refilled
{{ .global .align 16 .u32 src[8]; .shared .align 16 .u32 buf[4]; }}
P@cta 0 {{
  cp.async.cg.shared.global [buf], [src], 16;
  cp.async.wait_all;
  bar.sync 0;
  {read}
  cp.async.cg.shared.global [buf], [src + 16], 16;
  cp.async.commit_group;
  cp.async.wait_group {pending};
  bar.sync 0;
}}
Q@cta 0 {{
  bar.sync 0;
  ld.shared.u32 r0, [buf];
  {read}
  bar.sync 0;
}}
"""


@pytest.mark.daily(days=3, least=0)
@pytest.mark.parametrize("pending", [0, 1])
def test_a_read_is_handed_over_before_the_next_fill(pending: int) -> None:
    case = Case("refilled.litmus", text=REFILLED.format(read="", pending=pending))
    for found in (run_case(case, Settings()).findings, check_case(case, Settings(), Options()).findings):
        told = next(f.missing for f in found if f.code == "RACE003")
        assert told.startswith("Order line 15 before the issue of the operation at line 8: a barrier, or a release")
        assert "wait" not in told
    mended = Case("refilled.litmus", text=REFILLED.format(read="bar.sync 0;", pending=pending))
    assert "RACE003" not in {f.code for f in check_case(mended, Settings(), Options()).findings}


ROUNDS = """PTX rounds
{{ .global .align 16 .u32 src[64]; .shared .align 16 .u32 buf[8]; }}
P@cta 0 {{
  cp.async.cg.shared.global [buf], [src], 16;
  cp.async.commit_group;
  for k in 1..6 {{
    cp.async.cg.shared.global [buf + 16*(k%2)], [src + 16*k], 16;
    cp.async.commit_group;
    cp.async.wait_group {pending};
    bar.sync 0;
    {read}
  }}
}}
Q@cta 0 {{
  for k in 0..5 {{
    bar.sync 0;
    ld.shared.u32 r0, [buf + 16*(k%2)];
    {read}
  }}
}}
"""


@pytest.mark.daily(days=3, least=0)
@pytest.mark.parametrize("pending", [0, 1])
def test_a_ring_without_its_second_barrier(pending: int) -> None:
    case = Case("rounds.litmus", text=ROUNDS.format(read="", pending=pending))
    told = [f.missing for f in check_case(case, Settings(), Options()).findings if f.code == "RACE003"]
    assert told
    assert all(t.startswith("Order line 17 before the issue of the operation at line 7: a barrier") for t in told)
    mended = Case("rounds.litmus", text=ROUNDS.format(read="bar.sync 1;", pending=pending))
    assert check_case(mended, Settings(), Options()).verdict == "proved"


UNWAITED = """PTX unwaited
{{ .global .align 16 .b8 src[16]; .shared .align 16 .u32 buf[4]; .shared .align 8 .b64 bar; }}
P@cta 0 {{
  mbarrier.init.shared::cta.b64 [bar], 1;
  {store}bar.sync 0;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 16, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}}
Q@cta 0 {{
  bar.sync 0;
  {wait}
  ld.shared.u32 r0, [buf];
  ld.shared.u32 r1, [buf + 4];
}}
"""


def test_the_first_fill_is_waited_for() -> None:
    case = Case("unwaited.litmus", text=UNWAITED.format(store="", wait=""))
    found = [f for f in check_case(case, Settings(engine="protocol"), Options()).findings if f.code == "RACE003"]
    assert {f.missing.partition(", or")[0] for f in found} == {
        "Wait for the phase of the mbarrier that line 7 signals before line 13",
        "Wait for the phase of the mbarrier that line 7 signals before line 14",
    }
    assert all(". Or, if line 1" in f.missing for f in found)
    assert len(causes(group_findings(found))) == 1
    wait = "await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;"
    mended = Case("unwaited.litmus", text=UNWAITED.format(store="", wait=wait))
    assert check_case(mended, Settings(), Options()).verdict == "proved"


def test_what_was_stored_before_the_copy_may_be_what_is_read() -> None:
    store = "st.shared.v4.u32 [buf], {1, 1, 1, 1}; fence.proxy.async; "
    case = Case("unwaited.litmus", text=UNWAITED.format(store=store, wait=""))
    found = [f for f in check_case(case, Settings(engine="protocol"), Options()).findings if f.code == "RACE003"]
    assert all(f.missing.startswith("Order line 1") for f in found)
    assert len(found) == 2


UNREAD = """PTX unread
{ .global .align 16 .u32 src[4]; .shared .align 16 .u32 buf[4]; }
P@cta 0 {
  cp.async.cg.shared.global [buf], [src], 16;
  cp.async.wait_all;
}
Q@cta 0 { ld.shared.u32 r0, [buf]; }
"""


def test_a_wait_that_is_there_is_not_advised() -> None:
    case = Case("unread.litmus", text=UNREAD)
    for found in (run_case(case, Settings()).findings, check_case(case, Settings(), Options()).findings):
        assert all("Execute" not in f.missing for f in found if f.code == "RACE003")


PUBLISHED = """PTX published
{{ .global .align 16 .u32 dst[4]; .global .u32 flag; .shared .align 16 .u32 buf[4]; }}
P@cta 0 {{
  cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 16;
  cp.async.bulk.commit_group;
  {wait}
  st.{sem}.gpu.global.u32 [flag], 1;
}}
Q@cta 1 {{
  await ld.{seen}.gpu.global.u32 r0, [flag] == 1;
  ld.global.u32 r1, [dst];
}}
"""


@pytest.mark.daily
@pytest.mark.parametrize(
    ("wait", "sem", "seen", "says"),
    [
        ("cp.async.bulk.wait_group 0;", "relaxed", "acquire", "Execute fence.acq_rel.gpu before line 7, or make the "),
        ("cp.async.bulk.wait_group 0;", "release", "relaxed", "Execute fence.acq_rel.gpu after line 10, or make the "),
        ("", "release", "acquire", "Execute cp.async.bulk.wait_group 0 before line 7, which hands the bytes over."),
        ("cp.async.bulk.wait_group.read 0;", "release", "acquire", "Execute cp.async.bulk.wait_group 0 before line 7"),
    ],
)
def test_a_wait_that_is_there_is_not_asked_for(wait: str, sem: str, seen: str, says: str) -> None:
    case = Case("published.litmus", text=PUBLISHED.format(wait=wait, sem=sem, seen=seen))
    told = [f.missing for f in check_case(case, Settings(), Options()).findings if f.code == "RACE003"]
    assert told
    assert all(t.startswith(says) for t in told)


UNANNOUNCED = """PTX unannounced
{ .global .align 16 .u32 src[4]; .global .u32 flag; .shared .align 16 .u32 buf[4]; .shared .b64 bar; }
P@cluster 0, cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf@1], [src], 16, [bar@1];
  st.release.cluster.global.u32 [flag], 1;
  barrier.cluster.arrive;
  barrier.cluster.wait;
}
Q@cluster 0, cta 1 {
  barrier.cluster.arrive;
  barrier.cluster.wait;
  await ld.acquire.cluster.global.u32 r1, [flag] == 1;
  ld.shared.u32 r0, [buf];
  barrier.cluster.arrive;
  barrier.cluster.wait;
}
"""


def test_what_an_mbarrier_tells_of_is_in_no_group() -> None:
    """Not even where there is no mbarrier: the one in the other CTA is not initialised."""
    found = check_case(Case("unannounced.litmus", text=UNANNOUNCED), Settings(), Options()).findings
    assert "UB201" in {f.code for f in found}
    told = [f.missing for f in found if f.code == "RACE003"]
    assert told
    assert all(t.startswith("Wait for the phase of the mbarrier that line 8 signals before line 17") for t in told)


WRITTEN_FOR_IT = """PTX written-for-it
target sm_90a
{ .global .align 16 .b8 src[16]; .shared .align 16 .b8 buf[16]; .global .u32 flag; .shared .align 8 .b64 bar; }
P@cta 0 {
  st.global.u32 [src], 5;
  st.relaxed.gpu.global.u32 [flag], 1;
}
Q@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  await ld.relaxed.gpu.global.u32 r1, [flag] == 1;
  fence.proxy.async;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [src], 16, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
"""


@pytest.mark.daily
@pytest.mark.parametrize("engine", ["explicit", "z3", "protocol"])
def test_what_is_written_for_a_copy_is_to_be_handed_over_before_its_issue(engine: str) -> None:
    found = check_case(Case("written.litmus", text=WRITTEN_FOR_IT), Settings(engine=engine), Options()).findings
    (told,) = [f.missing for f in found if f.code == "RACE003"]
    assert "rder line 5 before the issue of the operation at line 13: a barrier, or a release that the issuing" in told
    assert "with fence.proxy.async before that" in told


UNREACHED = """PTX unreached
{ .shared .b64 full; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [full], 3;
  mbarrier.arrive.shared::cta.b64 _, [full];
  mbarrier.arrive.shared::cta.b64 _, [full];
  await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;
}
"""


def test_the_init_of_a_count_that_is_not_reached_is_named() -> None:
    """A count of 1, the number of threads, would end two phases."""
    (stuck,) = check_case(Case("unreached.litmus", text=UNREACHED), Settings(), Options()).findings
    said = "Phase 0 of full@0 got 2 of 3 arrivals: correct the count of its init at line 4, or let the others arrive"
    assert stuck.missing.startswith(said)


HANDED_ON = """PTX handed-on
{{ .global .align 16 .u32 dst[4]; .shared .align 16 .u32 buf[4]; .shared .b64 ready; }}
P@cta 0 {{
  mbarrier.init.shared::cta.b64 [ready], 1;
  bar.sync 0;
  st.shared.u32 [buf], 1;
  fence.proxy.async.shared::cta;
  mbarrier.arrive.shared::cta.b64 _, [ready];
}}
Q@cta 0 {{
  bar.sync 0;
  {wait}
  cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
}}
"""
READY = "await mbarrier.try_wait.parity.shared::cta.b64 [ready], 0;"


def test_the_wait_that_nobody_executes_is_asked_for() -> None:
    """Whichever access comes first in the execution that is shown."""
    assert check_case(Case("t.litmus", text=HANDED_ON.format(wait=READY)), Settings(), Options()).verdict == "proved"
    found = check_case(
        Case("t.litmus", text=HANDED_ON.format(wait="")), Settings(engine="protocol"), Options()
    ).findings
    told = {f.missing for f in found if f.code == "RACE003"}
    assert told
    expected = "Wait for the phase of the mbarrier that line 8 signals before line 13: nobody waits for it"
    assert all(each.startswith(expected) for each in told)


def test_of_two_mbarriers_that_nobody_waits_for_neither_is_asked_for() -> None:
    arrive = "  mbarrier.arrive.shared::cta.b64 _, [ready];\n"
    text = HANDED_ON.format(wait="").replace(arrive, arrive + arrive.replace("ready", "other"))
    text = text.replace(".shared .b64 ready;", ".shared .b64 ready; .shared .b64 other;")
    text = text.replace("  bar.sync 0;\n", "  mbarrier.init.shared::cta.b64 [other], 1;\n  bar.sync 0;\n", 1)
    found = check_case(Case("t.litmus", text=text), Settings(engine="protocol"), Options()).findings
    assert [f.code for f in found if f.code == "RACE003"]
    assert not any("nobody waits" in f.missing for f in found)


SLOT = """PTX slot
{ .global .align 16 .b8 src[16]; .shared .align 16 .u32 buf[4]; .shared .b64 full; .shared .b64 empty; }
Q@cta 0 {
  bar.sync 0;
  await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;
  ld.shared.u32 r0, [buf];
  mbarrier.arrive.shared::cta.b64 _, [empty];
}
P@cta 0 {
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.init.shared::cta.b64 [empty], 1;
  bar.sync 0;
  await mbarrier.try_wait.parity.shared::cta.b64 [empty], 0;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 16, [full];
}
"""


@pytest.mark.parametrize("change", [("", ""), ("[empty], 1;", "[empty], 2;")])
def test_of_threads_that_wait_for_each_other_the_wait_with_a_remedy_comes_first(change: tuple[str, str]) -> None:
    """Whichever role is the first of the program: P waits with the wrong parity, for whatever count."""
    (stuck,) = check_case(Case("slot.litmus", text=SLOT.replace(*change)), Settings(), Options()).findings
    assert [access.thread for access in stuck.accesses] == ["P", "Q"]
    assert stuck.missing.startswith("Nothing arrives on empty@0 before line ")
