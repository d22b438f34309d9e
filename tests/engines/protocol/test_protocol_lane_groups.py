"""Lane groups: lanes of a warp that take each step together have the findings that they have one by one."""

from __future__ import annotations

from random import Random

import pytest

from mcheck.base.budget import processor_time
from mcheck.base.reasons import Cause
from mcheck.base.verdicts import Verdict
from mcheck.cat import load_model
from mcheck.engines.protocol.analysis.lane_groups import partition_lanes
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.passes import ALL_PASSES, Passes, passes_without
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program
from tests.fuzz.lane_copies import lane_copies, share_operations

MODEL = load_model("ptx-9.0")
ONE_BY_ONE = passes_without(["lane-groups"])
FILL = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"


def kernel(lanes: str, other: str = "", arrivals: int = 3) -> str:
    """Two lanes of a warp, and a thread of another warp behind the initialisation of ``full``."""
    return f"""PTX lanes
{{
  .global .align 16 .b8 src[32]; .shared .align 16 .b8 buf[32]; .shared .align 4 .b8 data[8];
  .shared .align 8 .b64 full;
}}
i@cta 0, warp 1, lane 0 {{
  mbarrier.init.shared::cta.b64 [full], {arrivals};
  mbarrier.arrive.shared::cta.b64 _, [full];
  bar.sync 0;
  {other}
}}
a@cta 0, warp 0, lane 0..2 {{
  bar.sync 0;
  {lanes}
}}
"""


def found(program: Program, passes: Passes = ALL_PASSES) -> tuple[Verdict, set[str]] | None:
    """The verdict and the codes of all findings; ``None`` if that takes long."""
    with processor_time():
        given = check(program, MODEL, timeout=3, thorough=True, passes=passes)
    return (
        None if any(r.cause is Cause.TIME for r in given.reasons) else (given.verdict, {f.code for f in given.findings})
    )


def found_alike(text: str) -> tuple[Verdict, set[str]]:
    """What is found of lanes one by one, and, as is checked, of groups of them."""
    program = parse(text, "lanes.litmus")
    alone = found(program, ONE_BY_ONE)
    assert alone is not None
    assert found(program) == found(share_operations(program)) == alone
    return alone


def test_copies_to_one_place_race() -> None:
    copy = "cp.async.ca.shared.global [buf], [src + 16*%laneid], 16; cp.async.wait_all;"
    assert found_alike(kernel(copy)) == (Verdict.FINDING, {"RACE003"})
    assert found_alike(kernel(copy.replace("[buf]", "[buf + 16*%laneid]"))) == (Verdict.PROVED, set())


def test_bytes_may_come_before_another_lane_has_arrived() -> None:
    """Those of a lane then count in the phase that the other one still has to complete."""
    wait = "await mbarrier.try_wait.parity.shared::cta.b64 [full]"
    fill = f"{FILL} [buf + 16*%laneid], [src + 16*%laneid], 16, [full];"
    arrive = "mbarrier.arrive.shared::cta.b64 _, [full];"
    other = f"{wait}, 0; mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 32; {wait}, 1;"
    _, codes = found_alike(kernel(f"{arrive} {fill} {wait}, 0; {arrive} {wait}, 1;", other))
    assert codes == {"UB216", "DEAD003"}
    later = kernel(f"{arrive} {wait}, 0; {fill} {arrive} {wait}, 1;", other)
    assert found_alike(later) == (Verdict.PROVED, set())


def test_the_arrival_of_copies_may_come_before_another_lane_has_arrived() -> None:
    arrive = "mbarrier.arrive.shared::cta.b64 _, [full];"
    lanes = f"""st.shared.u32 [data + 4*%laneid], 1; {arrive}
      cp.async.ca.shared.global [buf + 16*%laneid], [src + 16*%laneid], 16;
      cp.async.mbarrier.arrive.noinc.shared.b64 [full]; cp.async.wait_all;"""
    other = f"await mbarrier.try_wait.parity.shared::cta.b64 [full], 0; ld.shared.u32 r0, [data + 4]; {arrive}"
    _, codes = found_alike(kernel(lanes, other))
    assert "RACE001" in codes


def test_a_lane_is_not_taken_for_another_one() -> None:
    """The copy of one lane overwrites what the other one reads: what a lane has read itself is not overwritten."""
    lanes = f"""ld.shared.u32 r0, [buf + 16*%laneid];
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
      {FILL} [buf + 16 - 16*%laneid], [src + 16*%laneid], 16, [full];
      await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;"""
    _, codes = found_alike(kernel(lanes))
    assert codes == {"RACE003"}


def test_lanes_that_copy_are_one_agent() -> None:
    lanes = f"{FILL} [buf + 16*%laneid], [src + 16*%laneid], 16, [full];"
    for program in (parse(kernel(lanes), "lanes.litmus"), share_operations(parse(kernel(lanes), "lanes.litmus"))):
        assert [len(group) for group in partition_lanes(program)] == [1, 2]
    reduction = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [src + 16*%laneid], [buf + 16*%laneid], 16;"
    assert [len(group) for group in partition_lanes(parse(kernel(reduction), "lanes.litmus"))] == [1, 1, 1]


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(96))
def test_random_copies_are_found_alike(seed: int) -> None:
    program = parse(lane_copies(Random(seed)), "lanes.litmus")
    alone = found(program, ONE_BY_ONE)
    if alone is not None:
        for one in (program, share_operations(program)):
            assert found(one) in (None, alone)
