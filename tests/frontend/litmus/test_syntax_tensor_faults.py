"""What the code of a sketch's threads says to be wrong with its tensor memory."""

from __future__ import annotations

import pytest

from mcheck.base.errors import Unsupported
from mcheck.frontend.litmus import parse
from mcheck.ir import ops

ALLOC = "tcgen05.alloc.cta_group::{}.sync.aligned.shared::cta.b32 [base], {};"
FREE = "tcgen05.dealloc.cta_group::{}.sync.aligned.b32 acc, {};"
PERMIT = "tcgen05.relinquish_alloc_permit.cta_group::{}.sync.aligned;"
LOAD = "tcgen05.ld.sync.aligned.32x32b.x8.b32 {...}, [acc];"
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];"


def product(use: str = "", group: int = 1, a: str = "[a, 32]", ws: str = "") -> str:
    return f"tcgen05.mma{ws}.cta_group::{group}.kind::f16{use} [acc, 16384], {a}, [b, 32];"


def one(*lines: str, role: str = "P@cta 0, warp 0, lane 0") -> str:
    return f"{role} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


def pair(ours: tuple[str, ...], theirs: tuple[str, ...]) -> str:
    roles = ("P@cluster 0, cta 0, warp 0, lane 0", "Q@cluster 0, cta 1, warp 0, lane 0")
    return "".join(one(*lines, role=role) for role, lines in zip(roles, (ours, theirs), strict=True))


def faults(roles: str) -> list[tuple[str, str, str]]:
    """By thread and instruction, the codes."""
    text = f"""PTX sketch
{{
  .tensor .b32 acc[128][32];
  .global .u32 flag;
  .shared .align 16 .b8 a[32], b[32];
  .shared .b64 done;
  .shared .b32 base;
}}
{roles}"""
    program = parse(text, "sketch.litmus")
    found = [
        (thread.name, op.text.split(".cta_group")[0].split(".sync")[0], op.wrong[0])
        for thread in program.threads
        for op in thread.code
        if isinstance(op, ops.TensorCore | ops.TensorMove | ops.TensorCommit) and op.wrong is not None
    ]
    return list(dict.fromkeys(found))


BOTH = (ALLOC.format(2, 32), PERMIT.format(2), LOAD, FREE.format(2, 32))
IN_ORDER = (ALLOC.format(1, 32), LOAD, FREE.format(1, 32))
WARP = "P@cta 0, warp 0"

RIGHT = {
    "in order": one(*IN_ORDER),
    "a warp": one(*IN_ORDER, role=WARP),
    "again": one(*IN_ORDER, *IN_ORDER),
    "in a loop": one("for k in 0..3 {", *IN_ORDER, "}"),
    "fewer columns the second time": one(
        ALLOC.format(1, 64), ALLOC.format(1, 32), FREE.format(1, 64), FREE.format(1, 32)
    ),
    "freed by another warp": one(ALLOC.format(1, 32))
    + one(LOAD, FREE.format(1, 32), role="Q@cta 0, warp 1, lane 0"),
    "more allocated later by another warp": one(ALLOC.format(1, 32), FREE.format(1, 32), LOAD)
    + one(*IN_ORDER, role="Q@cta 0, warp 1, lane 0"),
    "freed on one of two ways": one(
        ALLOC.format(1, 32), "ld.relaxed.gpu.global.u32 r0, [flag];", "if (r0 == 1) {", FREE.format(1, 32), "} else {",
        FREE.format(1, 32), "}",
    ),
    "a pair": pair(BOTH, BOTH),
    "two pairs of products in a collector": one(
        product(".collector::a::fill"), product(".collector::a::lastuse"), product(".collector::a::fill"),
        product(".collector::a::use"),
    ),
    "two collectors of B": one(
        product(".collector::b1::fill", ws=".ws"), product(".collector::b2::fill", ws=".ws"),
        product(".collector::b1::use", ws=".ws", a="[b, 32]"),
    ),
    "a collector of two threads": one(product(".collector::a::use"))
    + one(product(".collector::a::use"), role="Q@cta 0, warp 1, lane 0"),
}  # fmt: skip


@pytest.mark.parametrize("roles", RIGHT.values(), ids=RIGHT.keys())
def test_nothing_is_wrong(roles: str) -> None:
    assert faults(roles) == []


END = "the end of the thread"
WRONG = {
    "not freed": (one(ALLOC.format(1, 32)), [("P", END, "UB601")]),
    "freed once in two rounds": (
        one("for k in 0..2 {", ALLOC.format(1, 32), "}", FREE.format(1, 32)), [("P", END, "UB601")],
    ),
    "freed in each round": (
        one(ALLOC.format(1, 32), "for k in 0..2 {", FREE.format(1, 32), "}"), [("P", "tcgen05.dealloc", "UB603")],
    ),
    "freed by two warps": (
        one(*IN_ORDER) + one(FREE.format(1, 32), role="Q@cta 0, warp 1, lane 0"), [("Q", "tcgen05.dealloc", "UB603")],
    ),
    "more freed": (
        one(ALLOC.format(1, 32), FREE.format(1, 64)), [("P", "tcgen05.dealloc", "UB603"), ("P", END, "UB601")],
    ),
    "more columns the second time": (
        one(ALLOC.format(1, 32), ALLOC.format(1, 64), FREE.format(1, 32), FREE.format(1, 64)),
        [("P", "tcgen05.alloc", "UB602")],
    ),
    "without the permit": (one(PERMIT.format(1), *IN_ORDER), [("P", "tcgen05.alloc", "UB602")]),
    "used behind the end": (one(*IN_ORDER, LOAD), [("P", "tcgen05.ld", "UB604")]),
    "a product behind the end": (one(*IN_ORDER, product()), [("P", "tcgen05.mma", "UB604")]),
    "used behind the end of two": (one(*IN_ORDER, *IN_ORDER, LOAD), [("P", "tcgen05.ld", "UB604")]),
    "another group": (one(*IN_ORDER[:2], FREE.format(2, 32)), [("P", "tcgen05.dealloc", "UB605")]),
    "a commit of another group": (
        pair((*BOTH[:3], product(group=2), COMMIT, BOTH[3]), BOTH), [("P", "tcgen05.commit", "UB605")],
    ),
    "a permit of another group": (
        one(ALLOC.format(1, 32), PERMIT.format(2), LOAD, FREE.format(1, 32)),
        [("P", "tcgen05.relinquish_alloc_permit", "UB605")],
    ),
    "no peer": (
        one(*BOTH),
        [("P", f"tcgen05.{what}", "UB605") for what in ("alloc", "relinquish_alloc_permit", "dealloc")],
    ),
    "allocated by one": (pair(BOTH, ()), [
        ("P", f"tcgen05.{what}", "DEAD008") for what in ("alloc", "relinquish_alloc_permit", "dealloc")
    ]),
    "relinquished by one": (
        pair(BOTH, (BOTH[0], *BOTH[2:])), [("P", "tcgen05.relinquish_alloc_permit", "DEAD008")],
    ),
    "freed by one": (pair(BOTH, BOTH[:3]), [("P", "tcgen05.dealloc", "DEAD008"), ("Q", END, "UB601")]),
    "not filled": (one(product(), product(".collector::a::use")), [("P", "tcgen05.mma", "UB606")]),
    "used up": (
        one(product(".collector::a::fill"), product(".collector::a::lastuse"), product(".collector::a::use")),
        [("P", "tcgen05.mma", "UB606")],
    ),
    "another A": (
        one(product(".collector::a::fill"), product(".collector::a::use", a="[b, 32]")),
        [("P", "tcgen05.mma", "UB606")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("roles", "wanted"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_said_of_its_instruction(roles: str, wanted: list[tuple[str, str, str]]) -> None:
    assert sorted(faults(roles)) == sorted(wanted)


def test_ctas_of_a_pair_that_allocate_differently_are_left_open() -> None:
    ours = tuple(line.replace("32;", "64;") if "32x32b" not in line else line for line in BOTH)
    with pytest.raises(Unsupported, match=r"the CTAs of the pair call tcgen05\.alloc for 32 and for 64 columns"):
        faults(pair(ours, BOTH))


def test_a_sketch_without_an_allocation_is_asked_about_products_only() -> None:
    assert faults(one(LOAD, product())) == []
    assert faults(one(FREE.format(1, 32))) == [("P", "tcgen05.dealloc", "UB603")]
