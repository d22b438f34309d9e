"""What no operation can write, also where only the execution shows the address."""

from __future__ import annotations

import pytest

from mcheck.effects.unwritten_objects import find_unwritten_objects
from mcheck.frontend.litmus import parse

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
