"""Lanes that store to one place by one instruction count as one, which has to be one that shows their races."""

from __future__ import annotations

import pytest

from mcheck.ptx import check

MODULE = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 y)
{{
  .reg .pred %p<4>;
  .reg .b32 %r<9>;
  .reg .b64 %y, %o;
  .shared .align 4 .b32 s[4];
  ld.param.u64 %y, [y];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %o, %r2, 4;
  add.u64 %o, %o, %y;
  setp.eq.u32 %p1, %r2, {leader};
  {first}
  {between}
  {second}
  ret;
}}
"""
OWN_WORD = "ld.global.u32 %r3, [%o];"
BY_ONE = "@%p1 ld.shared.u32 %r3, [s];"
OF_ALL = "st.global.u32 [%y], %r2;"
SAME_VALUE = "st.shared.u32 [s], 0;"


def answer(first: str, second: str, *, between: str = "", leader: int = 0, threads: int = 64) -> list[str]:
    text = MODULE.format(first=first, second=second, between=between, leader=leader)
    found = check(text, {"grid": [1], "block": [threads], "params": {"y": {"buffer": 4096}}})
    return sorted({f.code for f in found.findings if f.severity == "error"}) or [str(found.verdict)]


@pytest.mark.parametrize("leader", [0, 1, 31, 40])
def test_one_lane_reads_what_all_overwrite_with_one_value(leader: int) -> None:
    assert answer(BY_ONE, SAME_VALUE, leader=leader) == ["RACE001"]
    assert answer(BY_ONE, SAME_VALUE, leader=leader, between="bar.sync 0;") == ["proved"]


def test_a_lane_reads_a_word_that_its_warp_overwrites() -> None:
    assert answer(OWN_WORD, OF_ALL, threads=32) == ["RACE001"]


def test_a_warp_that_has_met_has_no_race() -> None:
    assert answer(OWN_WORD, OF_ALL, threads=32, between="bar.warp.sync -1;") == ["proved"]
