"""``st.bulk`` in modules: a weak write of zeros of the generic proxy to a range of shared memory (PTX ISA 9.7.9.13)."""

from __future__ import annotations

import pytest

from mcheck.ptx import check
from tests.assembler import Assembler

OWN = "st.bulk.weak.shared::cta [%rd3], 16, 0;"
OF_NEIGHBOUR = "xor.b32 %r2, %r1, 1; mul.wide.u32 %rd5, %r2, 16; add.u64 %rd5, %rd5, %rd2; ld.shared.u32 %r2, [%rd5];"
ALL = "@%p1 bra FILLED; st.bulk.weak.shared::cta [tile], 512, 0; FILLED: bar.sync 0;"
COPY = """@%p1 bra DONE;
  cp.async.bulk.global.shared::cta.bulk_group [data], [tile], 512;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
DONE:"""
FLAG = "ld.shared.u32 %r3, [flag]; setp.eq.u32 %p2, %r3, 0; @%p2 bra DONE; st.shared.u32 [tile], %r1; DONE:"


def module(*body: str, target: str = "sm_100a") -> str:
    """A module in which each lane has 16 bytes of the tile."""
    lines = "\n".join(f"  {line}" for line in body)
    return f"""\
.version 8.8
.target {target}
.address_size 64
.visible .global .align 16 .b8 data[512];
.visible .entry k()
.reqntid 32, 1, 1
{{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .shared .align 16 .b8 tile[512];
  .shared .align 16 .b32 flag;
  .shared .align 4 .b32 behind;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  mul.wide.u32 %rd1, %r1, 16;
  mov.u64 %rd2, tile;
  add.u64 %rd3, %rd1, %rd2;
  cvta.shared.u64 %rd4, %rd3;
{lines}
  ret;
}}
"""


RIGHT = {
    "its own range": (OWN, "ld.shared.u32 %r2, [%rd3];"),
    "a generic address": ("st.bulk [%rd4], 16, 0;", "ld.shared.u32 %r2, [%rd3];"),
    "a size in a register": ("mov.u64 %rd6, 16;", OWN.replace("16,", "%rd6,"), "ld.shared.u32 %r2, [%rd3];"),
    "a barrier": (OWN, "bar.sync 0;", OF_NEIGHBOUR),
    "a barrier before": (OF_NEIGHBOUR, "bar.sync 0;", OWN),
    "a proxy fence": (ALL, "fence.proxy.async;", COPY),
    "guarded": ("@!%p1 st.bulk.weak.shared::cta [tile], 512, 0;", "bar.sync 0;", OF_NEIGHBOUR),
}


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT.keys())
def test_what_is_ordered_is_proved(body: tuple[str, ...]) -> None:
    found = check(module(*body), {"grid": 1})
    assert str(found.verdict) == "proved", (found.problem, found.reason, found.findings)


WRONG = {
    "two ranges": ("RACE002", ("@%p1 bra END; st.bulk.weak.shared::cta [%rd3], 24, 0; END:", "@%p1 " + OWN)),
    "no barrier": ("RACE002", (OWN, OF_NEIGHBOUR)),
    "no barrier before": ("RACE002", (OF_NEIGHBOUR, OWN)),
    "no proxy fence": ("RACE004", (ALL, COPY)),
    "another size": ("UB110", (OWN.replace("16,", "12,"),)),
    "beyond the tile": ("UB103", (ALL.replace("512", "1024"),)),
    "global memory": ("UB108", ("@!%p1 st.bulk [data], 16, 0;",)),
}


@pytest.mark.parametrize(("code", "body"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_found_at_its_line(code: str, body: tuple[str, ...]) -> None:
    text = module(*body)
    found = check(text, {"grid": 1})
    assert {f.code for f in found.findings} == {code}
    fills = {k for k, line in enumerate(text.splitlines(), 1) if "st.bulk" in line}
    assert all(fills.intersection(a.line for a in f.accesses) for f in found.findings)


def test_a_size_that_depends_on_data_is_left_open() -> None:
    text = module("ld.global.u64 %rd6, [data];", OWN.replace("16,", "%rd6,"))
    found = check(text.replace(".visible .global", ".extern .global"), {"grid": 1})
    assert str(found.verdict) == "unknown"
    assert "the size depends on data" in str(found.reason)


@pytest.mark.parametrize(("size", "verdict"), [(8, "proved"), (0, "finding")])
def test_control_sees_the_zeros(size: int, verdict: str) -> None:
    """The flag is zero again, so that no lane stores to the tile; the word behind it keeps its value."""
    fill = f"@!%p1 st.bulk.weak.shared::cta [flag], {size}, 0;" if size else "bar.warp.sync 0xffffffff;"
    text = module("@!%p1 st.shared.u32 [flag], 1;", "bar.sync 0;", fill, "bar.sync 0;", FLAG, OF_NEIGHBOUR)
    found = check(text.replace(".b32 flag", ".b32 flag[2]"), {"grid": 1})
    assert str(found.verdict) == verdict, (found.reason, found.findings)


def test_control_sees_what_is_not_filled() -> None:
    text = module(
        "@!%p1 st.shared.v2.u32 [tile], {1, 1};", "@!%p1 st.bulk.weak.shared::cta [tile+8], 8, 0;", "bar.sync 0;",
        FLAG.replace("[flag]", "[tile]").replace("[tile], %r1", "[flag], %r1"),
    )  # fmt: skip
    found = check(text, {"grid": 1})
    assert str(found.verdict) == "finding", found.reason
    kept = text.replace("[tile+8], 8", "[tile], 8")
    assert str(check(kept, {"grid": 1}).verdict) == "proved"


def test_clusters_fill_shared_memory_of_their_own() -> None:
    for fill in (OWN, OWN.replace("st.bulk.weak.shared::cta [%rd3]", "st.bulk [%rd4]")):
        found = check(module(fill, "bar.sync 0;", OF_NEIGHBOUR), {"grid": 1000})
        assert str(found.verdict) == "proved", found.reason
        assert found.covers is not None
        assert found.covers.total == 1000


def test_an_older_target_lacks_it() -> None:
    found = check(module(OWN, target="sm_90a"), {"grid": 1})
    assert "sm_100" in str(found.problem)


def test_the_assembler_takes_these_modules(assembler: Assembler) -> None:
    for body in (RIGHT["its own range"], RIGHT["a generic address"], RIGHT["a size in a register"]):
        status, said = assembler.assemble(module(*body), "-arch", "sm_100a")
        assert status == 0, said


GROWING = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u32 rounds)
.reqntid 32, 1, 1
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .shared .align 16 .b8 tile[512];
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, 0;
  mov.u32 %r4, %tid.x;
  setp.ne.u32 %p1, %r4, 0;
  mov.u64 %rd1, 8;
LOOP:
  @%p1 bra FILLED;
  st.bulk.weak.shared::cta [tile], %rd1, 0;
FILLED:
  bar.sync 0;
  MORE
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, %r1;
  @%p2 bra LOOP;
  ret;
}
"""


@pytest.mark.daily(least=0)
def test_a_size_that_grows_is_not_periodic() -> None:
    launch = {"grid": 1, "params": {"rounds": "any"}}
    assert str(check(GROWING.replace("MORE", ""), launch).verdict) == "proved"
    found = check(GROWING.replace("MORE", "add.u64 %rd1, %rd1, 8;"), launch)
    assert str(found.verdict) != "proved"
