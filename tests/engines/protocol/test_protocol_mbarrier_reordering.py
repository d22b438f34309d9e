"""Operations on mbarriers that may take effect behind what their threads do later: no program with one is proved."""

from __future__ import annotations

import re

import pytest

from mcheck.cat import load_model
from mcheck.engines.explicit.engine import answer
from mcheck.engines.protocol.final_states import answer as states_of
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.litmus import parse
from tests.fuzz.differential import run_engine

HEAD = """PTX overtaken
{ .global .align 16 .u32 g[4]; .shared .align 16 .u32 s[4]; .shared .align 8 .b64 x, y; .shared .u32 f; }
"""
INIT = "mbarrier.init.shared::cta.b64 [x], 1; mbarrier.init.shared::cta.b64 [y], 1; bar.sync 0;"
ARRIVE = "mbarrier.arrive.relaxed.cta.shared::cta.b64 _,"
RELEASE = "mbarrier.arrive.release.cta.shared::cta.b64 _,"
WAIT = "await mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64"
ACQUIRE = "await mbarrier.try_wait.parity.acquire.cta.shared::cta.b64"
SET = "st.relaxed.cta.shared.u32 [f], 1;"
SEEN = "await ld.relaxed.cta.shared.u32 r0, [f] == 1;"
TOO_EARLY = (
    "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [x], 16; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [x], 16;"
)
EXPECT = "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [x], 16;"
BYTES = "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [x], 16;"
COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [y];"

OVERTAKEN = {
    "arrive-behind-an-arrive": (f"{INIT} {ARRIVE} [x]; {ARRIVE} [y];", f"bar.sync 0; {WAIT} [y], 0; {TOO_EARLY}"),
    "release-not-acquired": (f"{INIT} {RELEASE} [x]; {RELEASE} [y];", f"bar.sync 0; {WAIT} [y], 0; {TOO_EARLY}"),
    "release-on-the-first-only": (f"{INIT} {RELEASE} [x]; {ARRIVE} [y];", f"bar.sync 0; {ACQUIRE} [y], 0; {TOO_EARLY}"),
    "arrive-behind-a-flag": (f"{INIT} {ARRIVE} [x]; {SET}", f"bar.sync 0; {SEEN} {TOO_EARLY}"),
    "arrive-behind-the-signal-of-a-copy": (
        f"{INIT} {RELEASE} [x]; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [y], 16; {COPY} {ARRIVE} [y];",
        f"bar.sync 0; {ACQUIRE} [y], 0; {TOO_EARLY}",
    ),
    "expectation-behind-a-flag": (
        f"{INIT} {EXPECT} {SET} {BYTES}",
        f"bar.sync 0; {SEEN} {ARRIVE} [x]; {WAIT} [x], 0; mbarrier.inval.shared::cta.b64 [x];",
    ),
    "three-threads": (
        f"{INIT} {ARRIVE} [x]; {ARRIVE} [y];",
        f"bar.sync 0; {WAIT} [y], 0; {SET}",
        f"bar.sync 0; {SEEN} {TOO_EARLY}",
    ),
}  # fmt: skip
KEPT = {
    "release-and-acquire": (f"{INIT} {ARRIVE} [x]; {RELEASE} [y];", f"bar.sync 0; {ACQUIRE} [y], 0; {TOO_EARLY}"),
    "fences": (
        f"{INIT} {ARRIVE} [x]; fence.acq_rel.cta; {ARRIVE} [y];",
        f"bar.sync 0; {WAIT} [y], 0; fence.acq_rel.cta; {TOO_EARLY}",
    ),
    "barrier": (f"{INIT} {ARRIVE} [x]; bar.sync 0;", f"bar.sync 0; bar.sync 0; {TOO_EARLY}"),
    "wait-before": (f"{INIT} {ARRIVE} [x]; {WAIT} [x], 0; {ARRIVE} [y];", f"bar.sync 0; {WAIT} [y], 0; {TOO_EARLY}"),
    "wait-before-a-copy": (
        f"{INIT} {ARRIVE} [x]; {WAIT} [x], 0; mbarrier.arrive.expect_tx.shared::cta.b64 _, [y], 16; {COPY}",
        f"bar.sync 0; {WAIT} [y], 0; {TOO_EARLY}",
    ),
    "one-phase": (
        f"{INIT.replace('[x], 1', '[x], 2')} {ARRIVE} [x]; {ARRIVE} [y];",
        f"bar.sync 0; {WAIT} [y], 0; {ARRIVE} [x];",
    ),
}  # fmt: skip


def program(threads: tuple[str, ...]) -> str:
    return HEAD + "\n".join(f"T{k}@cta 0 {{ {code} }}" for k, code in enumerate(threads)) + "\n"


@pytest.mark.daily
@pytest.mark.parametrize("name", OVERTAKEN)
def test_what_may_come_behind_a_later_operation_is_not_proved(name: str) -> None:
    p, model = parse(program(OVERTAKEN[name]), f"{name}.litmus"), load_model("ptx-9.0")
    assert answer(p, model, findings=True).undefined
    found = check(p, model, thorough=True)
    assert not found.covered
    assert found.reason is not None
    assert "line 3: " in found.reason, found.reason
    assert "may take effect after" in found.reason
    assert not states_of(p, model).complete


@pytest.mark.daily
@pytest.mark.parametrize("name", KEPT)
def test_what_an_axiom_keeps_in_order_is_proved(name: str) -> None:
    p, model = parse(program(KEPT[name]), f"{name}.litmus"), load_model("ptx-9.0")
    assert not answer(p, model, findings=True).undefined
    assert check(p, model, thorough=True).covered


FENCES = """PTX fences
{ .global .u32 z = 0, w = 0; }
P@cta 0 { bar.sync 0; fence.sc.gpu; ld.relaxed.gpu.global.u32 r0, [z]; if (r0 == 0) { st.global.u32 [w], 2; } }
Q@cta 0 { st.release.cta.global.u32 [z], 1; fence.sc.gpu; st.global.u32 [w], 3; }
"""


def test_an_exit_that_lets_a_barrier_go_orders_no_fences() -> None:
    p, model = parse(FENCES, "fences.litmus"), load_model("ptx-9.0")
    assert [f.code for f in answer(p, model, findings=True).findings] == ["RACE001"]
    found = check(p, model, thorough=True)
    assert not found.covered
    assert "fence.sc.gpu" in (found.reason or "")


STAYS = """PTX stays
{ .shared .align 8 .b64 b; .shared .u32 x; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [b], 2; bar.sync 0;
  mbarrier.test_wait.parity.shared::cta.b64 %p1, [b], 0; ld.shared.u32 r2, [x];
}
Q@cta 0 { mbarrier.inval.shared::cta.b64 [b]; st.shared.u32 [x], 1; }
"""


def test_an_exit_that_lets_a_barrier_go_puts_no_look_behind_what_came_before_it() -> None:
    p, model = parse(STAYS, "stays.litmus"), load_model("ptx-9.0")
    assert {f.code for f in answer(p, model, findings=True).findings} == {"UB201", "RACE001"}
    found = check(p, model, thorough=True)
    assert not found.covered
    assert "mbarrier.inval" in (found.reason or "")


REFILLED = """PTX refilled
{ .global .u32 z; .global .align 16 .u32 src[4] = {5, 5, 5, 5};
  .shared .align 16 .u32 dst[4]; .shared .align 8 .b64 b, e; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [b], 1; mbarrier.init.shared::cta.b64 [e], 1; bar.sync 0;
  await mbarrier.try_wait.parity.shared::cta.b64 [e], 0;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [b], 16;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [dst], [src], 16, [b];
  await mbarrier.try_wait.parity.shared::cta.b64 [b], 0;
  st.global.u32 [z], 1;
}
Q@cta 0 {
  bar.sync 0;
  ld.shared.u32 r0, [dst];
  mbarrier.arrive.shared::cta.b64 _, [e];
  if (r0 == 5) { st.global.u32 [z], 2; }
}
"""


def test_what_a_read_that_races_with_a_later_copy_decides_is_left_open() -> None:
    """Without the proxy fence the read may return what the copy behind it writes (RACE006)."""
    model = load_model("ptx-9.0")
    p = parse(REFILLED, "refilled.litmus")
    assert {f.code for f in answer(p, model, findings=True).findings} == {"RACE001", "RACE006"}
    found = check(p, model, thorough=True)
    assert not found.covered
    assert "not all orders of" in (found.reason or "")


LOST = """PTX lost
{ .shared .align 8 .b64 b; }
P@cta 0 { bar.sync 0; mbarrier.init.shared::cta.b64 [b], 1; }
Q@cta 0 { mbarrier.arrive.expect_tx.shared::cta.b64 _, [b], 16; }
R@cta 0 { bar.sync 0; await mbarrier.try_wait.parity.shared::cta.b64 [b], 0; }
"""


def test_what_follows_an_operation_whose_object_comes_too_late_is_left_open() -> None:
    p, model = parse(LOST, "lost.litmus"), load_model("ptx-9.0")
    assert {f.code for f in answer(p, model, findings=True).findings} == {"UB201", "DEAD003"}
    found = check(p, model, thorough=True)
    assert {f.code for f in found.findings} == {"UB201"}
    assert "created only after it" in (found.reason or "")


WARPGROUP = """PTX warpgroup
target sm_90a
{ .shared .align 8 .b64 x, y; }
maker@cta 0, warp 4 {
  mbarrier.init.shared::cta.b64 [x], 1; mbarrier.init.shared::cta.b64 [y], 1; bar.sync 0;
  mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [x];
  await mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 [y], 0;
  mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [x];
}
waits@cta 0, warp 0 {
  bar.sync 0;
  await mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 [x], 0;
  wgmma.commit_group.sync.aligned;
}
tells@cta 0, warp 1 {
  bar.sync 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [y];
}
"""


def test_who_waits_for_a_group_of_the_warpgroup_waits_for_what_the_other_warps_waited_for() -> None:
    p, model = parse(WARPGROUP, "warpgroup.litmus"), load_model("ptx-9.0")
    assert not answer(p, model, findings=True).findings
    assert check(p, model, thorough=True).covered


LAST = """PTX last
{ .shared .align 8 .b64 x; .shared .u32 d, f; }
P@cta 0 {
  bar.sync 0; await ld.relaxed.cta.shared.u32 r0, [f] == 1;
  ARRIVE [x]; TEST %p1, [x], 0; ld.shared.u32 r1, [d];
}
Q@cta 0 {
  mbarrier.init.shared::cta.b64 [x], 2; bar.sync 0; st.shared.u32 [d], 3;
  mbarrier.arrive.shared::cta.b64 _, [x]; st.relaxed.cta.shared.u32 [f], 1;
}
"""


def test_an_arrival_that_a_look_knows_of_in_time_alone_may_complete_the_phase_behind_it() -> None:
    text = LAST.replace("ARRIVE", "mbarrier.arrive.shared::cta.b64 _,")
    p = parse(text.replace("TEST", "mbarrier.test_wait.parity.shared::cta.b64"), "last.litmus")
    model = load_model("ptx-9.0")
    assert [f.code for f in answer(p, model, findings=True).findings] == ["RACE001"]
    found = check(p, model, thorough=True)
    assert not found.covered
    assert "may take effect after" in (found.reason or "")


REDUCTIONS = """PTX reductions
{ .shared .align 16 .u32 s; .shared .align 8 .b64 b, c; }
P@cluster 0, cta 0 {
  barrier.cluster.arrive; barrier.cluster.wait;
  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [s@1], 2, [b@1];
  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [s@1], 2, [c@1];
  barrier.cluster.arrive; barrier.cluster.wait;
}
Q@cluster 0, cta 1 {
  mbarrier.init.shared::cta.b64 [b], 1; mbarrier.init.shared::cta.b64 [c], 1; st.shared.u32 [s], 0;
  fence.mbarrier_init.release.cluster; barrier.cluster.arrive; barrier.cluster.wait;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [b], 4; mbarrier.arrive.expect_tx.shared::cta.b64 _, [c], 4;
  atom.relaxed.cluster.shared.add.u32 r0, [s], 1;
  WAIT
  await mbarrier.try_wait.parity.shared::cta.b64 [c], 0;
  ld.shared.u32 r2, [s];
  await mbarrier.try_wait.parity.shared::cta.b64 [b], 0;
  barrier.cluster.arrive; barrier.cluster.wait;
}
"""


@pytest.mark.parametrize(
    ("wait", "codes"), [("", {"RACE003"}), ("await mbarrier.try_wait.parity.shared::cta.b64 [b], 0;", set())]
)
def test_reductions_of_one_thread_may_come_in_the_other_order(wait: str, codes: set[str]) -> None:
    """The second may come first (8.9.1.1): whoever waits for it has then seen nothing of the first."""
    p, model = (
        parse(REDUCTIONS.replace("WAIT", wait), "reductions.litmus"),
        load_model("ptx-9.0"),
    )
    assert {f.code for f in answer(p, model, findings=True).findings} == codes
    found = check(p, model, thorough=True)
    assert found.verdict == "bounded"
    assert "red.async" in (found.reason or "")


UNDEFINED_LOOK = """PTX undefined-look
{ .shared .align 8 .b64 x, y; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [x], 1; mbarrier.init.shared::cta.b64 [y], 2;
  bar.sync 0;
  mbarrier.test_wait.acquire.cta.shared::cta.b64 %p2, [x], %rd1;
  mbarrier.arrive.shared::cta.b64 _, [y];
}
Q@cta 0 {
  bar.sync 0;
  mbarrier.arrive.shared::cta.b64 _, [y];
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [x], 16;
  await mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 [y], 0;
  mbarrier.arrive.shared::cta.b64 _, [x];
}
"""


def test_a_look_that_is_undefined_may_take_effect_behind_what_others_do_next() -> None:
    """Nobody waits for its answer, so that the other thread may misuse the object before (Q29)."""
    test, model = parse(UNDEFINED_LOOK, "look.litmus"), load_model("ptx-9.0")
    assert {f.code for f in answer(test, model, findings=True).findings} == {"UB205", "UB210"}
    found = check(test, model, thorough=True)
    assert {f.code for f in found.findings} == {"UB210"}
    assert "is undefined, but may take effect after" in (found.reason or "")


def test_a_look_in_vain_at_what_races_may_have_seen_the_newer_value() -> None:
    """The atomic is of too narrow a scope, so that nothing keeps the looks in order (8.10.5): one in vain sees what it
    writes, and the fence behind acquires it, though the last one still sees the older value.
    """
    program = parse(
        """PTX look-in-vain
{ .global .u32 f = 0; .global .u32 g = 1; }
P0@cta 0 { st.global.u32 [g], 2; fence.release.gpu; atom.relaxed.cta.global.cas.b32 r0, [f], 0, 1; }
P1@cta 1 { await ld.relaxed.gpu.global.u32 r0, [f] == 0; fence.acquire.gpu; st.global.u32 [g], 3; }
""",
        "look.litmus",
    )
    model = load_model("ptx-9.0")
    codes = {f.code for f in answer(program, model, findings=True).findings}
    found = check(program, model, thorough=True)
    assert "RACE010" in codes
    assert {f.code for f in found.findings} <= codes
    assert not found.covered
    assert "may take effect after" in (found.reason or "")


OBJECTS_OF_LATER = {
    "end-behind-what-it-cures": (
        {"UB201", "UB202"},
        """PTX end-behind-what-it-cures
{ .global .u32 f; .shared .align 8 .b64 x; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [x], 1; mbarrier.init.shared::cta.b64 [x], 1;
  st.relaxed.gpu.u32 [f], 1;
}
Q@cta 0 { await ld.relaxed.gpu.u32 r0, [f] == 1; mbarrier.inval.shared::cta.b64 [x]; }
""",
    ),
    "each-behind-the-other": (
        {"UB201", "UB202"},
        """PTX each-behind-the-other
{ .shared .align 8 .b64 x, y; }
P@cta 0 {
  mbarrier.inval.shared::cta.b64 [x];
  mbarrier.init.shared::cta.b64 [y], 1; mbarrier.init.shared::cta.b64 [y], 1;
}
Q@cta 0 { mbarrier.inval.shared::cta.b64 [y]; mbarrier.init.shared::cta.b64 [x], 1; }
""",
    ),
    "init-behind-another-that-is-found": (
        {"UB201", "UB202", "UB216"},
        """PTX init-behind-another-that-is-found
{ .shared .align 8 .b64 x, y; }
P@cta 0 {
  await mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 [x], 1;
  mbarrier.init.shared::cta.b64 [y], 1;
  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [x], 16;
  mbarrier.inval.shared::cta.b64 [y];
}
Q@cta 0 { mbarrier.init.shared::cta.b64 [y], 1; mbarrier.init.shared::cta.b64 [x], 2; }
""",
    ),
}


@pytest.mark.daily
@pytest.mark.parametrize("name", OBJECTS_OF_LATER)
def test_objects_that_are_made_or_gone_only_behind_what_finds_them(name: str) -> None:
    """Programs of an outside generator: the model has no order between an init and what nobody published it to."""
    codes, text = OBJECTS_OF_LATER[name]
    program, model = parse(text, f"{name}.litmus"), load_model("ptx-9.0")
    for other in ("explicit", "z3"):
        assert run_engine(other, program, model).codes == codes, other
    found = check(program, model, thorough=True)
    assert {f.code for f in found.findings} < codes
    assert not found.covered
    assert re.search("may take effect after|only after it", found.reason or "")
