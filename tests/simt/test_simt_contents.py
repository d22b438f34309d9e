"""What memory holds before a kernel begins: initialisers of the module, the system's part of shared memory."""

from __future__ import annotations

import pytest

from mcheck.ir.memory import SHARED_BASE
from mcheck.ptx import check
from mcheck.simt.execution.memory import Store

TABLE = """.version 8.0
.target sm_90
.address_size 64
.func writes (.param .b32 at);
.func meets (.param .b32 at);
SPACE .align 8 .u64 roles[2] = {writes, meets};
SPACE .align 4 .u32 order[2] = {1, 0};
.func writes (.param .b32 at) {
  .reg .b32 %r<4>;
  ld.param.b32 %r1, [at];
  st.shared.u32 [%r1], %r1;
  bar.sync 0;
  ret;
}
.func meets (.param .b32 at) {
  .reg .b32 %r<4>;
  ld.param.b32 %r1, [at];
  bar.sync 0;
  ld.shared.u32 %r2, [%r1];
  ret;
}
.visible .entry table()
.reqntid 64, 1, 1
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .shared .align 4 .b32 tile[64];
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 31;
  shr.u32 %r3, %r1, 5;
  mov.u64 %rd1, order;
  mad.wide.u32 %rd2, %r3, 4, %rd1;
  ld.FROM.u32 %r4, [%rd2];
  mov.u64 %rd3, roles;
  mad.wide.u32 %rd4, %r4, 8, %rd3;
  ld.FROM.u64 %rd5, [%rd4];
  mov.u32 %r5, tile;
  mad.lo.u32 %r6, %r2, 4, %r5;
  { .param .b32 given;
    st.param.b32 [given], %r6;
    role: .callprototype _ (.param .b32 _);
    call %rd5, (given), role; }
  ret;
}
"""


@pytest.mark.parametrize("space", ["const", "global"])
def test_tables_of_the_module_say_which_functions_are_called(space: str) -> None:
    text = TABLE.replace("SPACE", f".{space}").replace("FROM", space)
    found = check(text, {"grid": 1})
    assert (found.verdict, found.findings) == ("proved", ())
    said = "variables of the module initially hold their initialisers, or zero: roles, order"
    assert (said in found.assumptions) == (space == "global")
    early = text.replace("  st.shared.u32 [%r1], %r1;\n  bar.sync 0;", "  bar.sync 0;\n  st.shared.u32 [%r1], %r1;")
    assert [f.code for f in check(early, {"grid": 1}).findings] == ["RACE001"]


TWO_WARPS = """.version 8.0
.target sm_80
.address_size 64
.visible .entry two_warps()
.reqntid 64, 1, 1
{
  .reg .pred %p<4>;
  .reg .b32 %r<16>;
  .shared .align 4 .b32 tile[64];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %reserved_smem_offset_1;
  and.b32 %r3, %r1, 31;
  shr.u32 %r4, %r1, 5;
  setp.ne.u32 %p1, %r3, 0;
  mov.u32 %r5, tile;
  mad.lo.u32 %r6, %r1, 4, %r5;
  st.shared.u32 [%r6], %r1;
  bar.warp.sync -1;
  @%p1 bra MET;
  mov.u32 %r7, 1;
  shl.b32 %r7, %r7, %r4;
  atom.acq_rel.cta.shared.or.b32 %r8, [%r2], %r7;
  or.b32 %r8, %r8, %r7;
  setp.ne.u32 %p2, %r8, 3;
  @%p2 bra WAIT;
  red.relaxed.cta.shared.and.b32 [%r2], -4;
  bra.uni MET;
WAIT:
  ld.acquire.cta.shared.b32 %r9, [%r2];
  and.b32 %r10, %r9, %r7;
  setp.ne.u32 %p3, %r10, 0;
  @%p3 bra WAIT;
MET:
  bar.warp.sync -1;
  xor.b32 %r6, %r6, 128;
  ld.shared.u32 %r11, [%r6];
  ret;
}
"""


@pytest.mark.daily(days=4, least=0)
def test_cooperative_groups_count_in_the_system_s_part_of_shared_memory() -> None:
    """Two warps meet as a tile of 64 threads does: a bit of a word each, and who is last takes both away."""
    found = check(TWO_WARPS, {"grid": 1})
    assert (found.verdict, found.findings) == ("bounded", ())
    assert any("%reserved_smem_offset_1" in said for said in found.assumptions)
    weak = check(TWO_WARPS.replace("ld.acquire", "ld.relaxed"), {"grid": 1})
    assert [f.code for f in weak.findings] == ["RACE001"]


def test_a_tensor_map_at_the_end_of_all_addresses_is_not_known() -> None:
    """An address that was computed from what is not known may be any."""
    store = Store(1, 256, 32, 0, ())
    assert store.read_map((1 << 64) - 64) is None
    store.write_map(SHARED_BASE, 5)
    assert store.read_map(SHARED_BASE) == 5


ZEROED = """.version 8.0
.target sm_90
.address_size 64
KIND .global .align 4 .u32 lock;
.visible .entry k(.param .u64 sum)
{
  .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [sum];
AGAIN:
  atom.acquire.gpu.global.cas.b32 %r1, [lock], 0, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra AGAIN;
  ld.global.u32 %r2, [%rd1];
  add.u32 %r2, %r2, 1;
  st.global.u32 [%rd1], %r2;
  st.release.gpu.global.u32 [lock], 0;
  ret;
}
"""


@pytest.mark.parametrize(("kind", "verdict"), [(".visible", "proved"), (".extern", "bounded")])
def test_variables_without_an_initialiser_hold_zero(kind: str, verdict: str) -> None:
    """PTX ISA 5.1, table 7. Those of another module hold what that says."""
    found = check(ZEROED.replace("KIND", kind), {"grid": 2, "block": 1, "params": {"sum": {"buffer": 4}}})
    assert (found.verdict, found.findings) == (verdict, ())
    said = "variables of the module initially hold their initialisers, or zero: lock"
    assert (said in found.assumptions) == (verdict == "proved")
