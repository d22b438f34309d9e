"""The block form: placements, declarations, unrolling, branches, conditions."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from pathlib import Path

import pytest

from mcheck.base.errors import InputError, Unsupported
from mcheck.frontend.litmus import load, parse
from mcheck.ir.condition import Compare, ConstTerm, RegTerm
from mcheck.ir.expr import Binary, Const, Name, Reg, Special, Unary
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE, SHARED_WINDOW, TensorMapSpec
from mcheck.ir.ops import (
    Alu,
    Await,
    Barrier,
    Branch,
    BulkCopy,
    Load,
    MbarrierArrive,
    MbarrierInit,
    MbarrierWait,
    Op,
    TensorCore,
    TensorMove,
)
from mcheck.ir.program import Program
from mcheck.ir.resolve import expressions

VALID = Path(__file__).parent / "valid"


@pytest.fixture(scope="module")
def ring() -> Program:
    return load(str(VALID / "tma-ring.litmus"))


@pytest.fixture(scope="module")
def everything() -> Program:
    return load(str(VALID / "everything.litmus"))


def block(body: str, init: str = ".global .u32 x;", place: str = "cta 0", tail: str = "", pre: str = "") -> Program:
    return parse(f"PTX t\n{{ {init} }}\n{pre}\nP0@{place} {{\n{body}\n}}\n{tail}\n", "t.litmus")


def base(program: Program, name: str) -> int:
    instance = program.memory.instance_of(name)
    assert instance is not None
    return instance.base


# --- the example of a ring ------------------------------------------------------------------------


def test_ring_threads(ring: Program) -> None:
    assert len(ring.threads) == 129
    assert ring.threads[0].name == "producer"
    assert [ring.threads[i].name for i in (1, 128)] == ["consumer[0]", "consumer[127]"]
    assert [(t.place.warp, t.place.lane) for t in ring.threads[:3]] == [(0, 0), (1, 0), (1, 1)]
    assert ring.threads[128].place.warp == 4


def test_ring_head(ring: Program) -> None:
    assert (ring.name, ring.model, ring.target, ring.dialect) == ("tma-ring", "ptx-9.0", "sm_100a", False)
    assert ring.doc == ("full/empty ring: one TMA producer, four consumer warps",)
    assert (ring.expectation.verdict, ring.expectation.kinds) == ("pass", (("clean",),))


def test_ring_producer(ring: Program) -> None:
    code = ring.threads[0].code
    assert len(code) == 4 + 1 + 8 * 3
    full = SHARED_BASE + 0x900
    assert [type(op) for op in code[:8]] == [MbarrierInit] * 4 + [Barrier, Await, MbarrierArrive, BulkCopy]
    assert isinstance(code[2], MbarrierInit)
    assert code[2].address == Const(full + 8)
    waits = [op.inner for op in code if isinstance(op, Await)]
    assert [wait.parity for wait in waits if isinstance(wait, MbarrierWait)] == [
        Const(v) for v in (1, 1, 0, 0, 1, 1, 0, 0)
    ]
    copies = [op for op in code if isinstance(op, BulkCopy)]
    assert [copy.src for copy in copies] == [Const(GLOBAL_BASE + 1024 * k) for k in range(8)]
    assert [copy.dst for copy in copies[:3]] == [Const(SHARED_BASE + 1024 * (k % 2)) for k in range(3)]


def test_ring_lanes(ring: Program) -> None:
    def loads(index: int) -> list[object]:
        return [op.address for op in ring.threads[index].code if isinstance(op, Load)]

    assert loads(1)[0] == Const(SHARED_BASE)
    assert loads(6)[1] == Const(SHARED_BASE + 1024 + 20)
    assert loads(6) == loads(38)
    assert ring.threads[6].code[0] is ring.threads[7].code[0]


def test_ring_memory(ring: Program) -> None:
    x, y = ring.memory.instance_of("x"), ring.memory.instance_of("y")
    assert x is not None
    assert y is not None
    assert (y.physical, y.base != x.base) == (x.physical, True)
    assert ring.memory.instance_of("buf", ring.threads[0].place.cta) is not None
    assert ring.condition.formula == Compare("==", RegTerm(1, "r0", "consumer[0]:r0"), ConstTerm(0))


# --- everything else --------------------------------------------------------------------------------


def leaves(op: Op) -> set[type]:
    found: set[type] = set()

    def visit(expr: object) -> None:
        found.add(type(expr))
        if isinstance(expr, Unary):
            visit(expr.operand)
        elif isinstance(expr, Binary):
            visit(expr.left)
            visit(expr.right)

    for _, expr in expressions(op):
        visit(expr)
    return found


@pytest.mark.parametrize("name", ["tma-ring", "everything", "table"])
def test_names_are_gone(name: str) -> None:
    for thread in load(str(VALID / f"{name}.litmus")).threads:
        for op in thread.code:
            assert leaves(op) <= {Const, Reg, Unary, Binary}, op.text
            assert op.span is not None
            assert op.text
    assert leaves(Branch(target="L", condition=Name("x"))) == {Name}
    assert leaves(Branch(target="L", condition=Special("laneid"))) == {Special}


def test_initialisers(everything: Program) -> None:
    def content(name: str) -> bytes:
        instance = everything.memory.instance_of(name)
        assert instance is not None
        assert instance.object.init is not None
        return instance.object.init

    src = base(everything, "src")
    assert content("a") == b"".join(v.to_bytes(4, "little", signed=True) for v in (1, 2, 3, -4, 0, 0))
    assert content("p") == src.to_bytes(8, "little") + (src + 16).to_bytes(8, "little")
    assert content("one") == bytes.fromhex("0000803f")
    assert content("h") == bytes.fromhex("010002000300")
    assert content("b") == b"\x10\0\0\0"
    assert content("z") == content("x") == b"\x05\0\0\0"


def test_tensor_maps(everything: Program) -> None:
    tm, maps = everything.memory.instance_of("tm"), everything.memory.instance_of("maps")
    assert tm is not None
    assert maps is not None
    assert (tm.object.size, tm.object.align, maps.object.size, maps.object.space) == (128, 64, 256, "param")
    assert tm.object.tensor_map == (
        TensorMapSpec(
            global_address=base(everything, "src"),
            elemtype="f16",
            rank=2,
            global_dim=(64, 32),
            global_stride=(128,),
            element_stride=(1, 1),
            box_dim=(64, 8),
            swizzle_mode="128B",
            swizzle_atomicity="32B+8B",
        ),
    )
    assert [spec.global_address - base(everything, "dst") for spec in maps.object.tensor_map] == [0, 16]
    assert maps.object.tensor_map[1].pixel_box_lower_corner == (-1,)


def test_labels_of_loops(everything: Program) -> None:
    code, labels = everything.threads[0].code, everything.threads[0].labels
    targets = {op.target for op in code if isinstance(op, Branch)}
    assert targets <= labels.keys()
    assert sum(name.startswith("NEXT") for name in labels) == 4
    back = [at for at, op in enumerate(code) if isinstance(op, Branch) and op.text == "bra NEXT"]
    assert all(labels[code[at].target] == at - 4 for at in back)  # type: ignore[attr-defined]


def test_cluster_addresses(everything: Program) -> None:
    addresses = [op.address for op in everything.threads[0].code if op.text.startswith("st.shared::cluster")]  # type: ignore[attr-defined]
    peer = SHARED_BASE + SHARED_WINDOW + 1024
    assert addresses == [Const(peer + 4), Const(peer)]


def test_register_types(everything: Program) -> None:
    types = everything.threads[0].types
    assert {name: types[name] for name in ("s", "rd", "top", "v3", "r1")} == {
        "s": "pred",
        "rd": "u64",
        "top": "pred",
        "v3": "b32",
        "r1": "u32",
    }


def test_initial_registers(everything: Program) -> None:
    assert everything.threads[0].init == {"r7": 3}
    inits = [thread.init for thread in everything.threads if thread.role == "worker"]
    assert inits[33] == {"r7": base(everything, "x")}
    assert not inits[32]


def test_locations_list_arrays(everything: Program) -> None:
    labels = [getattr(term, "label", "") for term in everything.condition.locations]
    assert labels == ["x", "worker[2]:r0", *(f"a[{i}][{j}]" for i in (0, 1) for j in range(3)), "buf[1][3]@1"]


@pytest.mark.parametrize(
    ("special", "value"),
    [
        ("%laneid", 5),
        ("%warpid", 2),
        ("%tid.x", 69),
        ("%tid.y", 0),
        ("%cluster_ctarank", 1),
        ("%ctaid.x", 7),
        ("%cluster_nctarank", 2),
        ("%lanemask_lt", 31),
        ("%ntid.y", 1),
        ("WARP_SZ", 32),
        ("(1 + 2*3 << 4 & 0xff | 1 ^ 2) - ~0", 116),
        ("7 % 4 / 2 + (3 > 2) + !0", 3),
        ("-7/2", -3),
        ("N*N", 36),
        ("x", GLOBAL_BASE),
    ],
)
def test_values(special: str, value: int) -> None:
    other = "P1@cluster 3, cta 0 { }"
    program = block(f"mov.u64 %rd1, {special};", place="cluster 3, cta 1, warp 2, lane 5", pre=f"const N = 6; {other}")
    op = program.threads[1].code[0]
    assert isinstance(op, Alu)
    assert op.srcs == (Const(value),)


def test_lone_threads_get_free_warps() -> None:
    program = parse(
        "PTX t\n{ x = 0; }\na@cta 0 { }\nb@cta 0, warp 1, lane 3 { }\nc@cta 0 { }\nd@cta 0, lane 2 { }\n", "t.litmus"
    )
    assert [(t.name, t.place.warp, t.place.lane) for t in program.threads] == [
        ("a", 2, 0), ("b", 1, 3), ("c", 3, 0), ("d", 0, 2),
    ]  # fmt: skip


def test_counting_order() -> None:
    program = block("", place="lane 0..2, warp 1..3, cta 0..2, gpu 0..2")
    places = [(t.place.cta.gpu, t.place.cta.cluster, t.place.warp, t.place.lane) for t in program.threads]
    assert places == sorted(places)
    assert len(places) == 16
    assert not program.clustered
    assert {t.place.cta.rank for t in program.threads} == {0}


def test_constant_if_leaves_no_branch() -> None:
    program = block(
        "if (%laneid == 0) { st.global.u32 [x], 1; } else { st.global.u32 [x], 2; }", place="warp 0, lane 0..2"
    )
    assert [len(thread.code) for thread in program.threads] == [1, 1]
    assert [op.srcs for thread in program.threads for op in thread.code] == [(Const(1),), (Const(2),)]  # type: ignore[attr-defined]


def test_register_addresses() -> None:
    program = block("mov.u64 %rd1, x + 4;\nld.global.u32 r0, [%rd1 + 4*2];\nld.global.u32 r1, [r0 - 4];")
    first, second = (op.address for op in program.threads[0].code[1:])  # type: ignore[attr-defined]
    assert first == Binary("+", Reg("rd1"), Const(8))
    assert second == Binary("-", Reg("r0"), Const(4))


def test_constants_in_roles_follow_loops_and_scopes() -> None:
    body = "for i in 0..3 { const K = i * %laneid, L = K + 1; { const M = L; st.global.u32 [x], M; } }"
    program = block(body, place="warp 0, lane 2")
    assert [op.srcs for op in program.threads[0].code] == [(Const(v),) for v in (1, 3, 5)]  # type: ignore[attr-defined]


def test_percent_is_optional() -> None:
    program = block("ld.global.u32 %r0, [x];\nst.global.u32 [x], r0;", tail="exists (P0:%r0 == 0 /\\ P0:r0 == x)")
    load_, store = program.threads[0].code
    assert load_.dsts == store.srcs == (Reg("r0"),)  # type: ignore[attr-defined]


def test_await_forms() -> None:
    program = block(
        "await ld.acquire.gpu.u32 r0, [x] >= 2;\nawait ld.acquire.gpu.u32 r1, [x] == %laneid + 1;\n"
        "@!%p1 await mbarrier.try_wait.parity.shared::cta.b64 [b], 0;",
        ".global .u32 x; .shared .b64 b;",
    )
    first, second, third = program.threads[0].code
    assert isinstance(first, Await)
    assert isinstance(second, Await)
    assert isinstance(third, Await)
    assert first.compare == (">=", Const(2))
    assert second.compare == ("==", Const(1))
    assert third.compare is None
    assert third.guard is not None
    assert third.guard.negated
    assert isinstance(third.inner, MbarrierWait)
    assert third.inner.dst is None


def test_shared_object_without_rank_in_a_condition() -> None:
    program = block("ld.shared.u32 r0, [s];", ".shared .u32 s;", place="cta 0..2", tail="exists (s == 0 /\\ s@1 == 0)")
    assert len(program.warnings) == 1
    first, second = program.condition.formula.parts  # type: ignore[union-attr]
    assert second.left.address - first.left.address == SHARED_WINDOW  # type: ignore[union-attr]


def test_objects_keep_their_distance() -> None:
    program = block("", ".global .b8 a[300], b; .shared .b8 s[5], t[5]; .const .u64 c;")
    ends = [(i.base, i.base + i.object.size) for i in program.memory.instances]
    assert all(high + 255 < low for (_, high), (low, _) in pairwise(ends))
    assert all(low % 256 == 0 for low, _ in ends)


def test_branches_on_loop_variables_stay_in_their_round() -> None:
    program = block("for i in 0..2 { L: ld.global.u32 r0, [x]; beq r0, i, L; }")
    thread = program.threads[0]
    found = [(thread.labels[op.target], op.condition) for op in thread.code if isinstance(op, Branch)]
    assert found == [(0, Binary("==", Reg("r0"), Const(0))), (3, Binary("==", Reg("r0"), Const(1)))]


def test_limits() -> None:
    with pytest.raises(InputError) as caught:
        block("for i in 0..1000 { for j in 0..1000 { for k in 0..1000 { } } }")
    assert caught.value.code == "LIT057"


def test_a_register_of_a_loop_without_rounds_is_no_mistake_in_a_condition() -> None:
    text = (
        "PTX t\n{{ .global .u32 x; }}\np@cta 0 {{ for k in 0..{} {{ ld.global.u32 r0, [x]; }} }}\nexists (p:{} == 0)\n"
    )
    parse(text.format("N", "r0").replace("PTX t", "PTX t\nconst N = 0;"), "t.litmus")
    with pytest.raises(InputError) as caught:
        parse(text.format("3", "r1"), "t.litmus")
    assert caught.value.code == "LIT073"


def test_programs_are_frozen(ring: Program) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ring.name = "other"  # type: ignore[misc]


def test_a_condition_on_a_register_that_nothing_writes_is_warned_of() -> None:
    text = """PTX unset
{ .shared .u32 x; }
P@cta 0 {
  for k in 0..2 { if (k == 1) { st.shared.u32 [x], 1; } }
  if (%p9) { if (r3 == 2) { st.shared.u32 [x], 1; } }
  ld.shared.u32 r4, [x];
  if (r4 == 1) { st.shared.u32 [x], 2; }
}
"""
    told = [message for message, _ in parse(text, "unset.litmus").warnings]
    assert told == [f"register {name} of P is neither written nor initialised" for name in ("p9", "r3")]


def test_what_an_earlier_grid_does_is_said_behind_a_declaration() -> None:
    init = ".global .u32 x[2] = {1, 2} written by earlier grid, y read by earlier grid, z;"
    program = parse(f"PTX t\n{{ {init} }}\nP@cta 0 {{ griddepcontrol.wait; }}\n", "t.litmus")
    found = {i.object.name: (i.object.earlier_grid, i.object.init) for i in program.memory.instances}
    assert found == {"x": ("writes", bytes([1, 0, 0, 0, 2, 0, 0, 0])), "y": ("reads", bytes(4)), "z": (None, bytes(4))}


@pytest.mark.parametrize("init", [".shared .u32 x written by earlier grid;", ".global .u32 x written by another grid;"])
def test_other_words_behind_a_declaration_are_mistakes(init: str) -> None:
    with pytest.raises(InputError):
        parse(f"PTX t\n{{ {init} }}\nP@cta 0 {{ griddepcontrol.wait; }}\n", "t.litmus")


REQUEST = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [a], [b];"


def test_a_request_for_a_cluster_is_a_branch_to_a_copy_of_either_response() -> None:
    program = block(f"{REQUEST} {REQUEST}", ".shared .align 16 .b8 a[16]; .shared .b64 b;")
    copies = [op for op in program.threads[0].code if isinstance(op, BulkCopy)]
    assert len(copies) == 6
    assert {op.text for op in copies} == {REQUEST.rstrip(";")}
    sources = {op.src for op in copies}
    assert len(sources) == 2
    assert {op.size for op in copies} == {Const(16)}


def test_a_request_for_a_cluster_is_for_the_block_form() -> None:
    text = f"PTX t\n{{ .shared .align 16 .b8 a[16]; .shared .b64 b; }}\n P0@cta 0 ;\n {REQUEST}\n"
    with pytest.raises(Unsupported, match="block form"):
        parse(text, "t.litmus")


ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [w], 64;"
FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 acc, 64;"
TENSOR = ".tensor .b32 acc[2][128][32]; .shared .b32 w;"


def tensor_base(program: Program) -> int:
    return next(i.base for i in program.memory.instances if i.object.space == "tensor")


def test_tensor_memory_is_rows_of_lanes() -> None:
    place = "cta 0, warp 5, lane 3"
    ld = "tcgen05.ld.sync.aligned.32x32b.x8.b32 {...}, [acc[1] + 64];"
    program = block(f"{ALLOC} {ld} tcgen05.wait::ld.sync.aligned; {FREE}", TENSOR, place)
    start = tensor_base(program)
    (move,) = (op for op in program.threads[0].code if isinstance(op, TensorMove))
    assert (move.address, move.size) == (Const(start + (128 + 35) * 128 + 64), 32)
    alloc, free = (op for op in program.threads[0].code if isinstance(op, TensorCore))
    assert alloc.writes[1:] == ((Const(start), Const(2 * 128 * 32 * 4)),)
    assert free.writes == alloc.writes[1:]  # the only lane of its warp frees all rows


def test_a_warp_allocates_once_and_frees_row_by_row() -> None:
    program = block(f"{ALLOC} {FREE}", TENSOR, "cta 0, warp 1")
    cores = [[op for op in t.code if isinstance(op, TensorCore)] for t in program.threads]
    assert [len(found) for found in cores] == [2, *(1,) * 31]
    rows = [at.value for found in cores for at, _ in found[-1].writes if isinstance(at, Const)]
    assert sorted(rows) == [tensor_base(program) + 128 * k for k in range(256)]


@pytest.mark.parametrize(
    ("init", "message"),
    [
        (".tensor .b32 acc[64][32];", "perhaps several"),
        (".tensor .b16 acc[128][32];", "perhaps several"),
        (".tensor .b32 acc[5][128][128];", "columns of tensor memory"),
        (".tensor .b32 acc[128][32] = {};", ".tensor"),
    ],
)
def test_tensor_memory_has_a_shape(init: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        block("ret;", init)
    assert message in f"{caught.value.message} {caught.value.expected}"


def test_an_address_in_tensor_memory_is_a_name() -> None:
    with pytest.raises(Unsupported, match=r"name of a \.tensor object"):
        block("tcgen05.ld.sync.aligned.32x32b.x1.b32 {...}, [r0];", TENSOR)
