"""Every family: an instruction and the operation that it is, listed in ``tests/isa/operations``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from mcheck.base.errors import Unsupported
from mcheck.ir import ops
from mcheck.isa import decode
from mcheck.isa import families as family_modules
from mcheck.isa.families import DIALECT, MODULES, find_family, ptx_families
from mcheck.isa.instruction import Instruction
from tests.effort import effort
from tests.isa.operations.copies import COPIES
from tests.isa.operations.dialect import SHORT
from tests.isa.operations.local import LOCAL
from tests.isa.operations.memory import MEMORY
from tests.isa.operations.operands import P1, C, X
from tests.isa.operations.synchronisation import SYNCHRONISATION
from tests.isa.operations.tensor_core import TENSOR_CORE

Read = Callable[[str], Instruction]
Types = Callable[[str], str | None]

_LOAD = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
UNFOLLOWED = (
    "cp.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.cp_mask.b128 [x], [y], 16, 3",
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [x], [y], 16, 4, 0, [z]",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster::32b [x], [y], 16, [z], r0",
    f"{_LOAD}.mbarrier::report::validity::per_16bytes::8 [x], [y], 16, [z]",
    "cp.reduce.async.bulk.relaxed.cta.global.shared::cta.bulk_group.add.u32 [x], [y], 16",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f32 [x], [y], 16",
    "cp.async.bulk.wait_group.sync_restrict::shared::cta 0",
    "cp.async.bulk.wait_group.read.sync_restrict::shared::cluster 0",
    "mbarrier.init.layout::v1.shared::cta.b64 [x], 2",
    "mbarrier.check_layout.layout::v0.shared::cta.b64 p0, [x]",
    "mbarrier.test_wait.phase_type::primary.b64 p0|p1, [x], rd0",
    "mbarrier.expect_tx.shared::cluster.multicast::cluster::32b.b64 [x], 16, r0",
    "mbarrier.arrive.shared::cluster.multicast::cluster::32b.b64 _, [x], r0",
    "ld.global.u32.proxy::readonly r0, [x]",
    "red.async.relaxed.gpu.add.u32 [x], r0",
    "fence.proxy.generic::fabric.alias.release.sys",
    "fence.alias.release.sync_restrict::read.sys",
    "multimem.st.async.release.sys.global.u32 [x], r0",
    "multimem.red.async.release.sys.global.add.u32 [x], r0",
    "multimem.cp.async.bulk.relaxed.sys.global.shared::cta.bulk_group.cp_mask.b128 [x], [y], 16, rs0",
    "fabric.submit",
    "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group.override::global_address [x, rd1, {r0}], [y]",
    "tensormap.replace.tile.global_address.alloc_same.b1024.b64 [x], rd1",
    "tensormap.query.alloc_class_large.b1024 p0, [x]",
    "tcgen05.alloc.exclusive.cta_group::1.sync.aligned.b32 [x], 64",
    "tcgen05.ld.red.spcompress.sync.aligned.32x32b.x4.min.sp::2:4.f32.b2 {r0}, {r1, r2}, r3, [x]",
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.sync_restrict::shared::read::mma::a.b64 [x]",
)
"""Forms of PTX 9.1 to 9.5 that are legal and have no model."""

ALL = [*LOCAL, *MEMORY, *SYNCHRONISATION, *COPIES, *TENSOR_CORE, *SHORT]


def _plain(op: ops.Op) -> ops.Op:
    """``op`` without what it carries about its place in the text."""
    return replace(op, section="", guard=None)


@pytest.mark.parametrize(("text", "op"), ALL, ids=[text for text, _ in ALL])
def test_operation(text: str, op: ops.Op, read: Read, register_type: Types) -> None:
    decoded = decode(read(text), register_type=register_type)
    assert _plain(decoded) == op
    assert decoded.section
    assert decoded.text == text


@pytest.mark.parametrize("text", UNFOLLOWED)
def test_what_has_no_model_is_named(text: str, read: Read, register_type: Types) -> None:
    with pytest.raises(Unsupported) as caught:
        decode(read(text), target="sm_107a", register_type=register_type, dialect=False)
    name = text.partition(".")[0]
    assert f"'{text}' is legal" in caught.value.message or f"'{name}' is a PTX" in caught.value.message


def test_every_family_is_decoded_here() -> None:
    """An instruction belongs to the family with the longest name that it starts with."""

    def family_of(text: str, names: set[str]) -> str:
        opcode = text.split(" ", 1)[0]
        return max((name for name in names if opcode == name or opcode.startswith(name + ".")), key=len, default="")

    ptx = {family.name for family in ptx_families()}
    short = {family.name for family in DIALECT}
    assert {family_of(text, ptx) for text in (*(text for text, _ in ALL), *UNFOLLOWED)} >= ptx
    assert {family_of(text, short) for text, _ in SHORT} >= short


def test_a_family_is_in_the_module_that_is_imported_for_its_name() -> None:
    for module, names in MODULES.items():
        found = import_module(f"mcheck.isa.families.{module}").FAMILIES
        assert [family.name for family in found] == names.split()
    folder = Path(family_modules.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} - {"__init__", "common", "dialect"} == set(MODULES)
    for family in ptx_families():
        assert find_family(family.head) is family
    assert find_family(("st", "unheard")) is None


def test_the_table_is_complete_and_its_names_are_unique() -> None:
    for families in (ptx_families(), DIALECT):
        names = [family.name for family in families]
        assert len(set(names)) == len(names)
    for family in (*ptx_families(), *DIALECT):
        assert family.section
        assert family.title
        assert family.variants
        for variant in family.variants:
            slots = [slot.name for slot in variant.slots]
            assert len(set(slots)) == len(slots)
            args = [arg.name for arg in variant.args]
            assert len(set(args)) == len(args)
            for rule in variant.rules:
                assert rule.slot in slots


def test_the_dialect_can_be_left_out(read: Read) -> None:
    barrier = decode(read("bar.cta.sync 0, 64"), dialect=False)
    assert _plain(barrier) == ops.Barrier(kind="sync", barrier=C(0), count=C(64))


def test_a_guard_and_the_place_are_kept(read: Read) -> None:
    op = decode(read("@!p1 st.global.u32 [x], 1"))
    assert op.guard == ops.Guard(P1, negated=True)
    assert op.span is not None
    assert op.section == "9.7.9.11"


@pytest.mark.parametrize("text", ["mbarrier.try_wait.parity.b64 [x], 1", "mbarrier.try_wait.parity.b64 _, [x], 1"])
def test_an_awaited_wait_leaves_its_result_out(text: str, read: Read) -> None:
    op = decode(read(text), awaited=True)
    assert _plain(op) == ops.MbarrierWait(address=X, dst=None, parity=C(1), blocking=True)


@pytest.mark.parametrize("text", ["ld.relaxed.gpu r0, x", "ld.global.u32 r0, [x]", "add.u32 r0, r1, r2", COPIES[9][0]])
def test_decoding_is_fast(text: str, read: Read, register_type: Types) -> None:
    """Some 10 microseconds; the bound leaves room for a loaded machine."""
    instruction = read(text)
    decode(instruction, register_type=register_type)

    def often() -> None:
        for _ in range(20):
            decode(instruction, register_type=register_type)

    assert effort(often, 20 * 100e-6, tries=20) < 20 * 100e-6
