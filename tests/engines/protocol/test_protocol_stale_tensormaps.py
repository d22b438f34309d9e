"""Tensor maps that race: what a copy does by the map as it was, beside what it does by the newer one."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program
from tests.engine_findings import engine_findings

OBJECTS = """PTX maps
target sm_90a
{
  .global .align 16 .u32 src[4] = {1, 2, 3, 4};
  .global .align 16 .u32 src2[4] = {11, 12, 13, 14};
  .global .tensormap tm = { global_address = src, elemtype = u32, rank = 1, global_dim = {4}, global_stride = {},
  box_dim = {4}, element_stride = {1}, interleave_layout = none, swizzle_mode = none, swizzle_atomicity = 16B, fill_mode
  = zero }; .shared .align 128 .u32 dst[4]; .shared .align 8 .b64 bar;
}
"""
COPY = """
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [dst], [tm, {0}], [bar];
"""
ISSUER = """issuer@cta 0, warp 0, lane 0 {
  .reg .b64 addr;
  mbarrier.init.shared::cta.b64 [bar], 1;
  mov.u64 addr, src2;
  tensormap.replace.tile.global_address.global.b1024.b64 [tm], addr;MORE
COPY  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
  ld.shared.u32 r0, [dst[0]];
}
"""
WRITER = "writer@cta 0, warp 1, lane 0 { st.global.u32 [OBJECT], 7; }\n"


def maps(rest: str = "", more: str = "", copy: str = COPY) -> Program:
    """A map is replaced without a fence, and looked at."""
    issuer = ISSUER.replace("COPY", copy).replace("MORE", more)
    return parse(OBJECTS + issuer + rest, "maps.litmus")


BOTH = {"RACE003", "RACE009"}


@pytest.mark.parametrize(("rest", "codes"), [("", {"RACE009"}), (WRITER.replace("OBJECT", "src2"), BOTH)])
def test_where_the_older_map_shows_nothing_else_the_answer_is_whole(rest: str, codes: set[str]) -> None:
    """But for what the protocol engine leaves open of any race, where a map may hold what decides."""
    for engine in ("explicit", "protocol"):
        given = engine_findings(engine, maps(rest), load_model("ptx-9.0"), timeout=60)
        assert (given.complete, given.codes) == (engine == "explicit" or not rest, codes), engine


def test_what_only_the_older_map_shows_is_not_left_out() -> None:
    """The buffer that the map named before is written meanwhile."""
    test = maps(WRITER.replace("OBJECT", "src"))
    assert engine_findings("explicit", test, load_model("ptx-9.0"), timeout=60).codes == BOTH
    found = check(test, load_model("ptx-9.0"), timeout=60, thorough=True)
    assert not found.covered
    assert "a copy may read a racing tensor map as it was before the write" in str(found.reason)


DIMENSION = "\n  tensormap.replace.tile.global_dim.global.b1024.b32 [tm], 0, 2;"


@pytest.mark.daily
@pytest.mark.parametrize(
    "test",
    [
        maps(more=DIMENSION),
        maps(copy=COPY + COPY),
        maps("other@cta 1, warp 0, lane 0 { st.global.u64 [tm], 7; }\n"),
    ],
    ids=["two writes", "two looks", "two writers"],
)
def test_more_than_two_maps_are_not_followed(test: Program) -> None:
    found = check(test, load_model("ptx-9.0"), timeout=60, thorough=True)
    assert not found.covered
