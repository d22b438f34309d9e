"""Values that asynchronous copies move from known memory are followed: control that depends on them goes one way."""

from __future__ import annotations

import pytest

from mcheck.ptx import check

KERNEL = """.version 9.3
.target sm_100a
.address_size 64
.global .align 16 .u32 words[8] = {{1, 2, 3, 4, 5, 6, 7, 8}};
.global .align 16 .u32 out[4] = {{0, 16, 0, 0}};
.visible .entry k()
{{
  .reg .pred %p, %q, %d;
  .reg .b32 %t, %c, %r<8>;
  .reg .b64 %a<8>;
  .shared .align 16 .u32 tile[4];
  .shared .align 16 .u32 more[4];
  .shared .align 8 .b64 bar;
  mov.u32 %t, %tid.x;
  mov.u32 %c, %ctaid.x;
  setp.eq.u32 %p, %t, 0;
  setp.eq.u32 %q, %t, 32;
  {copies}
  bar.sync 0;
  {read}
  setp.eq.u32 %d, %r1, {value};
  @%d bar.sync 1, 96;
  ret;
}}
"""
"""All threads wait forever at barrier 1 if what is read is ``value``."""
READ = "ld.shared.u32 %r1, [tile+4];"
READ_OUT = "ld.global.u32 %r1, [out+4];"
FILL = """@%p st.shared.v4.u32 [tile], {5, 6, 7, 8}; @%p st.shared.v4.u32 [more], {1, 1, 1, 1};
  fence.proxy.async; bar.sync 0;"""
WAIT = "@G cp.async.bulk.commit_group; @G cp.async.bulk.wait_group 0; fence.proxy.async;"
REDUCE = "@G cp.reduce.async.bulk.global.shared::cta.bulk_group.OP [out], [FROM], 16;" + WAIT


def reduction(op: str, source: str, guard: str) -> str:
    """A reduction of four words of ``out``, and a wait for it."""
    return REDUCE.replace("OP", op).replace("FROM", source).replace("@G", f"@%{guard}")


ONE_VALUE = {
    "cp.async": ("@%p cp.async.ca.shared.global [tile], [words+16], 16; cp.async.wait_all;", READ, 6),
    "cp.async, zeros": ("@%p cp.async.ca.shared.global [tile], [words+16], 16, 4; cp.async.wait_all;", READ, 0),
    "cp.async, part of them": ("@%p cp.async.ca.shared.global [tile], [words+16], 16, 8; cp.async.wait_all;", READ, 6),
    "to shared memory": (
        """@%p mbarrier.init.shared.b64 [bar], 1; @%p fence.mbarrier_init.release.cluster; bar.sync 0;
  @%p mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
  @%p cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [words], 16, [bar];
W:
  mbarrier.try_wait.parity.shared.b64 %d, [bar], 0;
  @!%d bra W;""",
        READ,
        2,
    ),
    "to global memory": (
        FILL + "@%p cp.async.bulk.global.shared::cta.bulk_group [out], [tile], 16;" + WAIT.replace("@G", "@%p"),
        READ_OUT,
        6,
    ),
    "some bytes": (
        FILL
        + "@%p cp.async.bulk.global.shared::cta.bulk_group.cp_mask [out], [tile], 16, 0xff0f;"
        + WAIT.replace("@G", "@%p"),
        READ_OUT,
        16,
    ),
    "one addition": (FILL + reduction("add.u32", "tile", "p"), READ_OUT, 22),
    "two additions": (FILL + reduction("add.u32", "tile", "p") + reduction("add.u32", "more", "q"), READ_OUT, 23),
    "a copy behind a store": (
        FILL + "@%q st.shared.u32 [tile+4], 9; fence.proxy.async; bar.sync 0;" + reduction("or.b32", "tile", "p"),
        READ_OUT,
        25,
    ),
}


def verdict(copies: str, read: str, value: int, grid: int = 1) -> str:
    """The verdict about a kernel that ends unless it reads a value."""
    text = KERNEL.format(copies=copies, read=read, value=value)
    return check(text, {"grid": grid, "block": 64, "params": {}}).verdict


@pytest.mark.parametrize("name", ONE_VALUE)
def test_what_a_copy_leaves_is_followed(name: str) -> None:
    copies, read, value = ONE_VALUE[name]
    assert verdict(copies, read, value) == "finding"
    assert {verdict(copies, read, other) for other in (value + 1, 77)} == {"proved"}


SOME_VALUE = {
    "two reductions that do not commute": (
        FILL + reduction("add.u32", "tile", "p") + reduction("and.b32", "more", "q"),
        READ_OUT,
        (0, 6),
    ),
    "a reduction and a store": (
        FILL + reduction("add.u32", "more", "p") + "@%q st.relaxed.gpu.global.u32 [out+4], 1;",
        READ_OUT,
        (1, 2),
    ),
    "a reduction of what some order leaves": (
        FILL
        + "@%p st.relaxed.cta.shared.u32 [tile+4], 1; @%q st.relaxed.cta.shared.u32 [tile+4], 2;"
        + "fence.proxy.async; bar.sync 0;"
        + reduction("add.u32", "tile", "p"),
        READ_OUT,
        (17, 18),
    ),
    "a copy of what some order leaves": (
        FILL
        + "@%p st.relaxed.cta.shared.u32 [tile+4], 1; @%q st.relaxed.cta.shared.u32 [tile+4], 2;"
        + "fence.proxy.async; bar.sync 0;"
        + "@%p cp.async.bulk.global.shared::cta.bulk_group [out], [tile], 16;"
        + WAIT.replace("@G", "@%p"),
        READ_OUT,
        (1, 2),
    ),
    "a reduction and a second store of one thread": (
        FILL + reduction("add.u32", "more", "p") + "@%p st.relaxed.gpu.global.u32 [out+4], 1;",
        READ_OUT,
        (2,),
    ),
    "no wait": ("@%p cp.async.ca.shared.global [tile], [words+16], 16;", READ, (0, 6)),
    "a size that is data": (
        "mov.u32 %r2, %clock; @%p cp.async.ca.shared.global [tile], [words+16], 16, %r2; cp.async.wait_all;",
        READ,
        (0, 6),
    ),
}


@pytest.mark.parametrize("name", SOME_VALUE)
def test_what_some_order_leaves_is_not_taken_for_what_all_leave(name: str) -> None:
    copies, read, values = SOME_VALUE[name]
    assert "proved" not in {verdict(copies, read, value) for value in values}


OF_CTAS = {
    "where the launch gives the same": ("@%p cp.async.ca.shared.global [tile], [words], 16; cp.async.wait_all;", READ),
    "from another place": (
        """mov.u64 %a1, words; mul.wide.u32 %a2, %c, 16; add.u64 %a1, %a1, %a2; cvta.global.u64 %a1, %a1;
  @%p cp.async.ca.shared.global [tile], [%a1], 16; cp.async.wait_all;""",
        READ,
    ),
    "of another value": (
        """mov.u64 %a1, words; mul.wide.u32 %a2, %c, 16; add.u64 %a1, %a1, %a2; cvta.global.u64 %a1, %a1;
  mul.lo.u32 %r3, %c, 4; add.u32 %r3, %r3, 2; @%p st.shared.u32 [tile+4], %r3; fence.proxy.async; bar.sync 0;
  @%p cp.async.bulk.global.shared::cta.bulk_group [%a1], [tile], 16;"""
        + WAIT.replace("@G", "@%p"),
        "ld.global.u32 %r1, [%a1+4];",
    ),
}


@pytest.mark.parametrize("name", OF_CTAS)
def test_of_several_ctas_what_all_copy_is_followed(name: str) -> None:
    """CTA 0 reads 2; another one does so, or reads 6."""
    copies, read = OF_CTAS[name]
    same = name.startswith("where")
    assert verdict(copies, read, 2, grid=2) == "finding"
    assert (verdict(copies, read, 6, grid=2) == "proved") is same
    assert verdict(copies, read, 77, grid=2) != "finding" or not same
