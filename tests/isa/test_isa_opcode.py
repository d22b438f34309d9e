"""What the instruction table says of an opcode: its kind, the operands it writes, its qualifiers."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from mcheck.base.errors import McheckError
from mcheck.frontend.ptx.lowering import operation_template
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ir import ops
from mcheck.ir.def_use import read_registers, written_registers
from mcheck.isa import kinds
from mcheck.isa.families import ptx_families
from mcheck.isa.kinds import Kind
from mcheck.isa.opcode import Opcode, read_opcode
from mcheck.isa.unmodelled import ROWS

SIMT = Path(__file__).parents[1] / "simt"
PACKAGE = Path(__file__).parents[2] / "mcheck"
MODULES = sorted((SIMT / "corpus").glob("*/*.ptx"))


def opcode(text: str) -> Opcode:
    return read_opcode(tuple(text.split(".")))


@pytest.mark.parametrize(
    ("text", "kind", "written"),
    [
        ("ld.global.u32", Kind.LOAD, (0,)),
        ("ldu.global.u32", Kind.LOAD, (0,)),
        ("st.shared.v2.f32", Kind.STORE, ()),
        ("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32", Kind.ASYNC_STORE, ()),
        ("st.bulk.shared::cta", Kind.FILL, ()),
        ("atom.global.add.u32", Kind.ATOMIC, (0,)),
        ("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32", Kind.ASYNC_REDUCTION, ()),
        ("cp.async.bulk.prefetch.tensor.2d.L2.global", Kind.TENSOR_PREFETCH, ()),
        ("cp.async.bulk.commit_group", Kind.COPY_GROUP, ()),
        ("bar.sync", Kind.BARRIER, ()),
        ("bar.red.popc.u32", Kind.BARRIER_REDUCTION, (0,)),
        ("barrier.cta.arrive.aligned", Kind.BARRIER_ARRIVAL, ()),
        ("barrier.cluster.arrive.relaxed.aligned", Kind.CLUSTER_ARRIVAL, ()),
        ("barrier.cluster.wait.acquire", Kind.CLUSTER_WAIT, ()),
        ("griddepcontrol.wait", Kind.GRID_WAIT, ()),
        ("griddepcontrol.launch_dependents", Kind.GRID_TRIGGER, ()),
        ("mbarrier.try_wait.parity.shared::cta.b64", Kind.MBARRIER_WAIT, (0,)),
        ("mbarrier.arrive.expect_tx.shared::cta.b64", Kind.MBARRIER_ARRIVAL, (0,)),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", Kind.WGMMA, (0,)),
        ("tcgen05.ld.sync.aligned.32x32b.x4.b32", Kind.TMEM_LOAD, (0,)),
        ("tcgen05.st.sync.aligned.32x32b.x4.b32", Kind.TMEM_STORE, ()),
        ("cvt.rn.f16x2.f32", Kind.ARITHMETIC, (0,)),  # the table has integers only: as for any cvt
        ("lop3.b32", Kind.ARITHMETIC, (0,)),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", Kind.MATRIX_PRODUCT, (0,)),
        ("wmma.store.d.sync.aligned.row.m16n16k16.f32", Kind.FRAGMENT_STORE, (0,)),  # an address, so nothing
        ("brx.idx", Kind.INDEXED_BRANCH, ()),
        ("nonsense.u32", Kind.UNKNOWN, (0,)),
    ],
)
def test_kinds_and_written_operands(text: str, kind: Kind, written: tuple[int, ...]) -> None:
    assert (opcode(text).kind, opcode(text).written) == (kind, written)


def test_accumulators_are_read_as_well() -> None:
    assert opcode("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16").updated == (0,)
    assert opcode("tcgen05.ld.sync.aligned.32x32b.x4.b32").updated == ()


def test_addresses() -> None:
    assert opcode("ld.global.u32").addresses == (1,)
    assert opcode("ldu.global.u32").addresses == (1,)
    assert opcode("st.global.u32").addresses == (0,)
    assert opcode("cp.async.ca.shared.global").addresses == (0, 1)
    assert opcode("bar.sync").addresses == ()


def test_qualifiers() -> None:
    made = opcode("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes")
    assert (made.spaces, made.space) == (("shared::cluster", "global"), "shared")
    assert opcode("ld.u32").space == "generic"
    assert opcode("ld.acquire.gpu.global.v4.u32").is_strong
    assert not opcode("ld.weak.global.u32").is_strong
    assert opcode("ld.acquire.gpu.global.v4.u32").scope == "gpu"
    assert opcode("ld.acquire.gpu.global.v4.u32").vector == 4
    assert (opcode("membar.gl").orders, opcode("membar.gl").scope) == (("sc",), "gpu")
    assert opcode("ld.global.nc.v2.f32").without("nc") == opcode("ld.global.v2.f32")


def test_every_kind_is_that_of_an_instruction() -> None:
    rows = {variant.kind or family.kind for family in ptx_families() for variant in family.variants}
    rows |= {family.kind for family in ptx_families()} | {row.kind for row in ROWS}
    assert rows == set(Kind)


def test_sets_of_kinds_that_divide_instructions_do_not_overlap() -> None:
    apart = (
        kinds.COMPUTATIONS, kinds.COLLECTIVES, kinds.STORES, kinds.REDUCTIONS, kinds.COPIES, kinds.PREFETCHES,
        kinds.FENCES, kinds.BARRIERS, kinds.MBARRIERS, kinds.WARPGROUP, kinds.TMEM, kinds.JUMPS,
    )  # fmt: skip
    assert max(Counter(kind for group in apart for kind in group).values()) == 1


@pytest.mark.daily
@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_registers_are_those_of_the_operations(path: Path) -> None:
    """What the operation of a statement writes and reads, the statement writes and reads."""
    compared = 0
    for function in parse_module(path.read_text(encoding="utf-8"), path.name).functions.values():
        for statement in function.body:
            try:
                op = operation_template(function, statement)
            except McheckError:
                continue
            if isinstance(op, ops.Wgmma | ops.TensorCore | ops.TensorMove):
                continue  # without their registers
            defs = {r.name for r in statement.defs}
            uses = {r.name for r in statement.uses} - {r.register.name for r in [statement.guard] if r is not None}
            assert {name for name, _ in written_registers(op)} <= defs, statement.text
            assert {name for name, _ in read_registers(op)} <= uses, statement.text
            compared += 1
    assert compared > 10


PARTS = re.compile(r"\bopcode\.(parts|name)\b")
READERS = {
    "checking/check/missing_atomics.py",
    "frontend/ptx/illegal_instructions.py",
    "frontend/ptx/instruction_forms.py",
    "frontend/ptx/lane_arithmetic.py",
    "frontend/ptx/lowering.py",
    "frontend/ptx/module.py",
    "simt/execution/async_registers.py",
    "simt/execution/waits/barrier_waits.py",
    "simt/execution/waits/broadcast_waits.py",
    "simt/execution/path_literals.py",
    "simt/execution/value_numbering.py",
    "simt/execution/waits/value_tests.py",
    "simt/grid/counters/count_uses.py",
    "simt/grid/draws/drawn_numbers.py",
    "simt/grid/footprints/affine_forms.py",
    "simt/grid/footprints/class_names.py",
    "simt/grid/footprints/watched_execution.py",
    "simt/grid/looks/known_bits.py",
    "simt/grid/looks/warp_exploration.py",
    "simt/grid/signals/early_polls.py",
    "simt/instructions/atomics.py",
    "simt/instructions/computation.py",
    "simt/instructions/matrix_descriptors.py",
    "simt/instructions/memory_accesses.py",
    "simt/instructions/wmma.py",
    "simt/parametric/affine.py",
    "simt/parametric/watched_execution.py",
    "simt/rounds/round_forms.py",
}
"""Modules that read single words of an opcode: for messages, for the arithmetic of one instruction, for its shape."""


def test_what_an_instruction_is_is_asked_of_the_table() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix()
        for folder in ("frontend/ptx", "simt", "checking")
        for path in (PACKAGE / folder).rglob("*.py")
        if PARTS.search(path.read_text(encoding="utf-8"))
    }
    assert found == READERS
