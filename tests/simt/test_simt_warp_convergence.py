"""Aligned instructions that not all lanes of a warp execute (UB307)."""

from __future__ import annotations

import pytest

from mcheck.ptx import check

HEAD = """\
.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 in)
.reqntid 64, 1, 1
{
  .reg .b32 %r<9>;
  .reg .b64 %rd<3>;
  .reg .pred %p<3>;
  .shared .align 16 .b32 base[64];
  mov.u32 %r2, %laneid;
  mov.u32 %r4, base;
  setp.eq.u32 %p1, %r2, 0;
"""
TAIL = "  ret;\n}\n"
ALLOC = """\
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 32;
  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
"""
FREE = """\
  bar.sync 0;
  ld.shared.b32 %r1, [base];
  bar.sync 0;
  mov.u32 %r3, %tid.x;
  setp.ge.u32 %p2, %r3, 32;
  @%p2 bra END;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
END:
"""
FIRST = "  mov.u32 %r3, %tid.x;\n  setp.ge.u32 %p2, %r3, 32;\n  @%p2 bra SKIP;\n"
STORE = "  stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r4], {%r5};\n"

PARTED = {
    "an allocation by a leader": "  @!%p1 bra SKIP;\n" + FIRST + ALLOC + "SKIP:\n" + FREE,
    "a guard": f"  @%p1 {STORE.strip()}\n",
    "rounds that differ": "  mov.u32 %r6, 0;\nL:\n" + STORE + "  add.u32 %r6, %r6, 16;\n"
    "  setp.le.u32 %p2, %r6, %r2;\n  @%p2 bra L;\n",
    "a half of the warp each": "  setp.lt.u32 %p2, %r2, 16;\n  @%p2 bra A;\n"
    + STORE
    + "  bra B;\nA:\n"
    + STORE
    + "B:\n",
}
ALIKE = {
    "one warp of two": FIRST + ALLOC + "SKIP:\n" + FREE,
    "lanes that come one after the other": "  @%p1 bra A;\n  mov.u32 %r5, 1;\nA:\n" + STORE,
    "a branch that nobody knows": "  ld.param.u64 %rd1, [in];\n  ld.global.u32 %r7, [%rd1];\n"
    "  setp.eq.u32 %p2, %r7, 0;\n  @%p2 bra A;\n" + STORE + "A:\n",
}  # fmt: skip


def codes(body: str) -> dict[str, list[int]]:
    """The lines of each finding."""
    found = check(HEAD + body + TAIL, {"grid": 1, "params": {"in": {"buffer": 256}}}, timeout=60)
    assert found.verdict in ("proved", "finding", "unknown"), found
    return {f.code: [a.span.line for a in f.accesses if a.span] for f in found.findings}


@pytest.mark.daily
@pytest.mark.parametrize("name", PARTED)
def test_lanes_that_part_are_told(name: str) -> None:
    found = codes(PARTED[name])
    text = (HEAD + PARTED[name]).splitlines()
    assert "UB307" in found
    assert all("aligned" in text[line - 1] for line in found["UB307"])


@pytest.mark.daily
@pytest.mark.parametrize("name", ALIKE)
def test_lanes_that_do_the_same_are_not(name: str) -> None:
    assert "UB307" not in codes(ALIKE[name])
