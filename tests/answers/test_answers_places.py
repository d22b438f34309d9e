"""Fixes of races name the statement to change, or the lines that a barrier goes between, also where none was tried."""

from __future__ import annotations

import pytest

from mcheck.checking.check.command import check_case
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.engines.protocol import exploration
from mcheck.engines.protocol.fix_search import advice
from mcheck.findings.finding import Finding

ROTATED = """PTX rotated
{ .shared .align 16 .u32 s[64]; }
P@cta 0, warp 0..2 {
  st.shared.u32 [s + 4*%tid.x], 1;
  bar.sync 0;
  ld.shared.u32 r0, [s + 4*((%tid.x + 32) % 64)];
  st.shared.u32 [s + 4*%tid.x], 2;
}
"""
RESET = """PTX last-one-resets
{{ .global .u32 sem = 0; }}
P@cta 0..2 {{
  fence.acq_rel.gpu;
  atom.relaxed.gpu.global.add.u32 r0, [sem], 1;
  if (r0 == 1) {{
    fence.acq_rel.gpu;
    st{}.global.u32 [sem], 0;
  }}
}}
"""
LOW_COUNT = """PTX low-count
{ .shared .b64 bar; }
P@cta 0, warp 0..2, lane 0 {
  if (%warpid == 0) { mbarrier.init.shared::cta.b64 [bar], 1; }
  bar.sync 0;
  mbarrier.arrive.shared::cta.b64 _, [bar];
}
"""
FILLED = """PTX filled
{{ .global .align 16 .u32 src[64]; .shared .align 16 .u32 buf[64]; .shared .b64 bar; }}
P@cta 0, warp 0..2, lane 0 {{
  if (%warpid == 0) {{ mbarrier.init.shared::cta.b64 [bar], 1; }}
  bar.sync 0;
  {before}
  if (%warpid == 0) {{
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 256, [bar];
  }}
  {behind}
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}}
"""


@pytest.fixture(autouse=True)
def no_fix_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exploration, "MAX_FIX_STEPS", -1)
    monkeypatch.setattr(advice, "MAX_STEPS", -1)


def found(text: str) -> tuple[Finding, ...]:
    return check_case(Case("t.litmus", text=text), Settings(), Options()).findings


def test_a_barrier_goes_between_the_statements_that_a_thread_executes_with_none_between() -> None:
    (race,) = found(ROTATED)
    assert race.missing.startswith("Put a barrier between line 6 and line 7, or release after the first access")


def test_statements_that_follow_each_other_in_both_orders_lack_more_than_one_barrier() -> None:
    text = ROTATED.replace("  ld", "  for k in 0..2 {\n  ld").replace("2;\n}", "2;\n  }\n}")
    (race,) = found(text)
    assert "put a barrier between them" in race.missing


@pytest.mark.parametrize(
    ("place", "index", "says", "own"),
    [
        ("cta 0..2", "0", "or put a barrier of the grid between them.", True),
        ("cluster 0, cta 0..2", "0", "or put barrier.cluster.arrive and barrier.cluster.wait between them.", True),
        ("gpu 0..2", "0", "Release after the first access and acquire before the second.", True),
    ],
)
def test_two_ctas_need_more_than_a_barrier_of_the_cta(place: str, index: str, says: str, own: bool) -> None:
    (race,) = found(
        f"PTX one-word\n{{ .global .u32 x; }}\nP@{place} {{\n  st.global.u32 [x + {index}], %ctaid.x;\n}}\n"
    )
    assert says in race.missing
    assert ("If each CTA has bytes of its own, correct the address." in race.missing) == own


def test_the_reset_of_a_counter_has_to_be_strong() -> None:
    (race,) = found(RESET.format(""))
    assert race.missing == "Make the write at line 8 st.relaxed.gpu: a weak one races with the atomic at line 5."
    assert not found(RESET.format(".relaxed.gpu"))


def test_a_count_that_was_not_tried_is_named_at_the_init() -> None:
    (early,) = found(LOW_COUNT)
    assert early.code == "UB212"
    assert early.missing.startswith("Initialise bar@0 at line 4 with count 2 instead of 1, if the 2 threads")


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("behind", "Wait for the phase of the mbarrier that line 9 signals before line 11"),
        ("before", "Order line 6 before the issue of the operation at line 9"),
    ],
)
def test_a_write_waits_for_the_copy_that_its_thread_has_issued_before(place: str, says: str) -> None:
    rest = dict.fromkeys(("before", "behind"), "") | {place: "st.shared.u32 [buf + 4*%warpid], 1;"}
    races = [race for race in found(FILLED.format(**rest)) if "P[1]" in race.accesses[0].thread]
    assert races
    assert all(race.missing.startswith(says) for race in races), races


DRAINED = """PTX drained
{{ .global .align 16 .u32 src[16]; .shared .align 16 .u32 buf[16]; }}
P@cta 0, warp 0..2, lane 0 {{
  cp.async.cg.shared.global [buf + 16*%warpid], [src], 16;
  cp.async.commit_group;
  cp.async.cg.shared.global [buf + 32 + 16*%warpid], [src], 16;
  cp.async.commit_group;
  {first}
  ld.shared.u32 r0, [buf + 16 - 16*%warpid];
  {second}
  ld.shared.u32 r1, [buf + 48 - 16*%warpid];
}}
"""


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        ("cp.async.wait_group 1; bar.sync 0;", "cp.async.wait_group 0;", "Put a barrier between the wait at line 10"),
        ("cp.async.wait_group 1; bar.sync 0;", "", "Execute cp.async.wait_group 0 instead of 1 at line 8"),
        (
            "bar.sync 0; cp.async.wait_group 1;",
            "cp.async.wait_group 0; bar.sync 0;",
            "Put a barrier between the wait at line 8 and line 9, or a release that is acquired. Or execute",
        ),
    ],
)
def test_the_wait_for_the_last_groups_lacks_a_barrier_of_its_own(first: str, second: str, says: str) -> None:
    races = found(DRAINED.format(first=first, second=second))
    assert races
    assert all(race.missing.startswith(says) for race in races), [race.missing for race in races]
