"""What is said about illegal instructions: the blocks of ``errors.txt``."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mcheck.base.errors import InputError, Unsupported
from mcheck.isa import decode
from mcheck.isa.instruction import Instruction
from mcheck.isa.unmodelled import INSTEAD, UNMODELLED

GOLDEN = Path(__file__).with_name("errors.txt")
TEXT = GOLDEN.read_text(encoding="utf-8")
HEADER, *BLOCKS = TEXT.rstrip("\n").split("\n\n")

Read = Callable[[str], Instruction]
Types = Callable[[str], str | None]


def _block(first: str, read: Read, register_type: Types) -> str:
    """The block of the instruction in the line ``first``."""
    target, text = first[1:].split(" ", 1) if first.startswith("@") else (None, first)
    with pytest.raises(InputError) as caught:
        decode(read(text), target=target, register_type=register_type)
    error = caught.value
    assert error.span is not None
    assert error.code == "illegal-instruction"
    lines = [first]
    lines.append(" " * (error.span.column - 1 + len(first) - len(text)) + "^" * error.span.length)
    lines.append(error.message)
    lines += [f"  {name}: {value}" for name, value in (("legal", error.expected), ("hint", error.hint)) if value]
    return "\n".join([*lines, f"  section: {error.section}"])


@pytest.mark.parametrize("block", BLOCKS, ids=[block.split("\n", 1)[0] for block in BLOCKS])
def test_message(block: str, read: Read, register_type: Types, promote: bool) -> None:
    if promote:
        pytest.skip("the blocks are being rewritten")
    assert _block(block.split("\n", 1)[0], read, register_type) == block


def test_there_are_many_blocks_and_they_can_be_rewritten(read: Read, register_type: Types, promote: bool) -> None:
    assert len(BLOCKS) >= 100
    if promote:
        made = [_block(block.split("\n", 1)[0], read, register_type) for block in BLOCKS]
        GOLDEN.write_text("\n\n".join([HEADER, *made]) + "\n", encoding="utf-8")


@pytest.mark.parametrize("opcode", sorted(UNMODELLED))
def test_other_ptx_instructions_are_unsupported_and_no_error(opcode: str, read: Read) -> None:
    with pytest.raises(Unsupported):
        decode(read(f"{opcode}.sync.b32 r0, [x]"))


@pytest.mark.parametrize("opcode", sorted(INSTEAD))
def test_what_stands_for_an_instruction_is_told_where_something_does(opcode: str, read: Read) -> None:
    assert opcode in UNMODELLED
    with pytest.raises(Unsupported, match=re.escape(INSTEAD[opcode])):
        decode(read(f"{opcode}.sync.b32 r0, [x]"))


@pytest.mark.parametrize(
    "text",
    [
        "add.rn.f32 ff0, ff1, ff2",
        "red.global.add.noftz.f16x2 [x], r1",
        "red.global.add.v2.f32 [x], {ff0, ff1}",
        "red.global.v2.f32.add [x], {ff0, ff1}",
        "red.release.gpu.add.noftz.v4.bf16x2 [x], {r0, r1, r2, r3}",
        "atom.global.v2.f16.max.noftz {rs0, rs1}, [x], {rs2, rs3}",
        "atom.global.add.v4.f32 _, [x], {ff0, ff1, ff2, ff3}",
    ],
)
def test_what_is_legal_but_not_modelled_is_unsupported(text: str, read: Read) -> None:
    with pytest.raises(Unsupported, match="not modelled"):
        decode(read(text))


@pytest.mark.parametrize(
    "text",
    [
        "cp.async.bulk.global.shared::cta.bulk_group [x], [y], 24",
        "mbarrier.try_wait.parity.shared::cta.b64 p0, [x], 2",
        "mbarrier.init.shared::cta.b64 [x], 0",
        "bar.sync 0, 33",
        "cp.async.ca.shared.global [x], [y], 4, 8",
    ],
)
def test_operands_that_are_undefined_when_executed_are_no_errors(text: str, read: Read) -> None:
    decode(read(text))


def test_an_unknown_target_gets_the_nearest_one(read: Read) -> None:
    with pytest.raises(InputError, match="unknown target 'sm_91a'") as caught:
        decode(read("mov.u32 r0, 1"), target="sm_91a")
    assert caught.value.hint == "did you mean sm_90a?"
    assert caught.value.section == "11.1.2"


_OBJECTS = {"x": "shared", "y": "global", "c": "const", "p": "param"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ld.shared.u32 r0, [y]", "'y' is in .global, but the operand 'a' must be in .shared"),
        ("ld.u32 r0, [c]", "'c' is in .const, but the operand 'a' must be in .global or .shared"),
        ("mbarrier.init.b64 [y], 1", "'y' is in .global, but the operand 'addr' must be in .shared"),
        ("cp.async.bulk.global.shared::cta.bulk_group [x], [x], 16", "'x' is in .shared, but the operand 'dstMem'"),
        ("cp.async.ca.shared.global [x], [x], 4", "'x' is in .shared, but the operand 'src'"),
        ("st.global.u32 [x + 4], 1", "'x' is in .shared"),
    ],
)
def test_an_object_in_another_space_than_the_instruction_names(text: str, words: str, read: Read) -> None:
    with pytest.raises(InputError) as caught:
        decode(read(text), object_space=_OBJECTS.get)
    assert words in caught.value.message
    decode(read(text))


@pytest.mark.parametrize(
    "text",
    [
        "ld.shared::cluster.u32 r0, [x]",
        "ld.u32 r0, [y]",
        "ld.const.u32 r0, [c]",
        "st.shared.u32 [r0], 1",
        "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [c, {r0}], [x]",
        "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [p, {r0}], [x]",
        "atom.relaxed.gpu.add.u32 r0, [undeclared], 1",
        "st.weak y, 1",
    ],
)
def test_objects_where_they_belong(text: str, read: Read) -> None:
    decode(read(text), object_space=_OBJECTS.get)
