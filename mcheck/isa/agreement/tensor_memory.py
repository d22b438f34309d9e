"""``tcgen05`` instructions on matrices: what the table writes as a byte range the assembler reads as an address in
tensor memory, or as a descriptor.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.isa.agreement.sample import Line, Sample, constant, memory, reg, vector

NAMES = frozenset(f"tcgen05.{name}" for name in ("ld", "st", "mma", "cp", "shift"))

_REGISTERS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4}
"""By shape, registers for each repetition."""


def _tensor(number: int) -> Sample:
    """An address in tensor memory to the assembler, a byte range to the table."""
    return Sample(f"[r{number}]", memory(reg("r", number), constant(1024)).operand)


def _descriptor(number: int) -> Sample:
    return Sample(f"rd{number}", memory(reg("rd", number), constant(1024)).operand)


def lines(name: str) -> Iterator[Line]:
    """The spellings of one of these instructions, and some that are wrong."""
    head = tuple(name.split("."))
    for rest, operands in _operands(name):
        opcode = (*head, *rest)
        yield Line(opcode, operands, name, "variant")
        if name != "tcgen05.mma":  # its last operands may be left out here
            yield Line(opcode, operands[:-1], name, "operand dropped")
        yield Line((*opcode, "sync"), operands, name, "qualifier added")
        for index in range(2, len(opcode)):
            yield Line((*opcode[:index], opcode[index] + "x", *opcode[index + 1 :]), operands, name, "misspelt")


def _operands(name: str) -> Iterator[tuple[tuple[str, ...], tuple[Sample, ...]]]:
    match name.partition(".")[2]:
        case "ld" | "st":
            for shape, each in _REGISTERS.items():
                for number in (1, 2, 8, 32, 64, 128):
                    place = memory(reg("r", 1))
                    held = vector([reg("r", k + 2) for k in range(min(number * each, 128))])
                    operands = (held, place) if name.endswith("ld") else (place, held)
                    yield ("sync", "aligned", shape, f"x{number}", "b32"), operands
        case "mma":
            matrices = (_tensor(1), _descriptor(2), _descriptor(3))
            for kind in ("f16", "tf32", "f8f6f4", "i8", "f32"):
                for group in ("1", "2", "3"):
                    yield (f"cta_group::{group}", f"kind::{kind}"), (*matrices, reg("r", 4), reg("p", 1))
        case "cp":
            for shape in ("128x256b", "4x256b", "128x128b", "128x64b"):
                yield ("cta_group::1", shape), (_tensor(1), _descriptor(2))
            yield ("cta_group::2", "64x128b", "warpx2::02_13"), (_tensor(1), _descriptor(2))
            yield ("cta_group::1", "32x128b", "warpx4"), (_tensor(1), _descriptor(2))
            yield ("cta_group::1", "32x128b"), (_tensor(1), _descriptor(2))
            yield ("cta_group::1", "128x256b", "b8x16", "b6x16_p32"), (_tensor(1), _descriptor(2))
        case _:
            for group in ("1", "2"):
                yield (f"cta_group::{group}", "down"), (_tensor(1),)
