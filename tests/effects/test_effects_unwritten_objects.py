"""What no operation can write, also where only the execution shows the address."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.effects.unwritten_objects import find_unwritten_objects
from mcheck.frontend.litmus import parse
from tests.engine_findings import engine_findings

HEAD = """PTX writes-by-a-register
{
  .global .align 16 .b8 src[16], dst[16];
  .shared .align 16 .b8 buf[16];
  .shared .align 8 .b64 bar;
}
P@cta 0 {
  .reg .b64 a;
  .reg .pred p;
  mov.u64 a, %s;
  %s;
}
"""
BULK = "cp.async.bulk.shared::%s.global.mbarrier::complete_tx::bytes [a], [src], 16, [bar]"
SHARED = {
    "store": "st.shared.u32 [a], 1",
    "atomic": "red.shared.add.u32 [a], 1",
    "fill": "st.bulk.shared::cta [a], 16, 0",
    "cp.async": "cp.async.cg.shared.global [a], [src], 16",
    "bulk": BULK % "cta",
    "bulk-cluster": BULK % "cluster",
    "st.async": "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [a], 1, [bar]",
}
ELSEWHERE = {
    "generic": "st.u32 [a], 1",
    "global": "st.global.u32 [a], 1",
    "atomic": "red.add.u32 [a], 1",
    "bulk": "cp.async.bulk.global.shared::cta.bulk_group [a], [buf], 16",
}


def kept(address: str, instruction: str) -> set[str]:
    """The names of the objects of global memory that are not written."""
    program = parse(HEAD % (address, instruction), "unwritten.litmus")
    found = find_unwritten_objects(program)
    return {i.object.name for i in program.memory.instances if i.base in found}


@pytest.mark.parametrize("instruction", SHARED.values(), ids=SHARED)
@pytest.mark.parametrize("address", ["buf", "src"])
def test_what_names_shared_memory_writes_no_global_memory(address: str, instruction: str) -> None:
    """An address elsewhere is UB108 or UB105, and writes nothing."""
    assert kept(address, instruction) == {"src", "dst"}


@pytest.mark.parametrize("instruction", ELSEWHERE.values(), ids=ELSEWHERE)
def test_what_may_be_global_memory_may_be_any_of_it(instruction: str) -> None:
    assert kept("buf", instruction) == set()


MAPS = """PTX maps
target sm_90a
{
  .global .align 16 .u32 src[4] = {1, 2, 3, 4}, other[4] = {5, 6, 7, 8};
  .global .tensormap tm = { global_address = src, elemtype = u32, rank = 1, global_dim = {4}, global_stride = {},
  box_dim = {4}, element_stride = {1}, interleave_layout = none, swizzle_mode = none, swizzle_atomicity = 16B,
  fill_mode = zero };
  .shared .align 128 .u32 dst[4]; .shared .align 16 .u32 buf[4]; .shared .align 8 .b64 bar;
}
issuer@cta 0, warp 0, lane 0 {
  .reg .b64 addr;
  mbarrier.init.shared::cta.b64 [bar], 1;
  mov.u64 addr, other;
  REPLACE
  fence.proxy.tensormap::generic.release.gpu;
  fence.proxy.tensormap::generic.acquire.gpu [tm], 128;
  COPY
}
second@cta 0, warp 1, lane 0 { SECOND }
"""
REPLACE = "tensormap.replace.tile.global_address.global.b1024.b64 [tm], addr;"
STORE = """st.shared.u32 [dst], 1; fence.proxy.async;
  cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [tm, {0}], [dst];
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"""
LOAD = """mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [dst], [tm, {0}], [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;"""


@pytest.mark.parametrize(
    ("copy", "second"),
    [
        (STORE, "cp.async.ca.shared.global [buf], [other], 16; cp.async.wait_all;"),
        (LOAD, "st.global.u32 [other], 7;"),
    ],
    ids=["store", "load"],
)
def test_a_map_that_is_replaced_names_another_object(copy: str, second: str) -> None:
    """What its copies touch there races, though no declaration says that they touch it."""
    text = MAPS.replace("COPY", copy).replace("SECOND", second)
    for replace, codes in ((REPLACE, {"RACE003"}), ("", set())):
        program = parse(text.replace("REPLACE", replace), "maps.litmus")
        for engine in ("explicit", "protocol"):
            assert engine_findings(engine, program, load_model("ptx-9.0"), timeout=60).codes == codes, engine
