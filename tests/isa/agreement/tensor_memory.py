"""``tcgen05`` instructions on matrices: what the table writes as a byte range the assembler reads as an address in
tensor memory, or as a descriptor.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.isa.agreement.sample import Line, Sample, constant, memory, reg, vector

_MOVES = ("ld", "ld.red", "st")
_PRODUCTS = ("mma", "mma.sp", "mma.ws", "mma.ws.sp")
NAMES = frozenset(f"tcgen05.{name}" for name in (*_MOVES, *_PRODUCTS, "cp", "shift"))

_REGISTERS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
"""By shape, registers for each repetition."""


def _tensor(number: int) -> Sample:
    """An address in tensor memory to the assembler, a byte range to the table."""
    return Sample(f"[r{number}]", memory(reg("r", number), constant(1024)).operand)


def _descriptor(number: int) -> Sample:
    return Sample(f"rd{number}", memory(reg("rd", number), constant(1024)).operand)


def _vector(number: int) -> Sample:
    return vector([reg("r", k + 2) for k in range(number)])


def _products(
    meta: tuple[Sample, ...], groups: tuple[str, ...], buffer: str
) -> Iterator[tuple[tuple[str, ...], tuple[Sample, ...]]]:
    """Products without scales, of each kind."""
    operands = (_tensor(1), _descriptor(2), _descriptor(3), *meta, reg("r", 4), reg("p", 1))
    for kind in ("f16", "tf32", "f8f6f4", "i8", "f32"):
        for group in groups:
            yield (f"cta_group::{group}", f"kind::{kind}"), operands
        yield ("cta_group::1", f"kind::{kind}", f"collector::{buffer}::fill"), operands
    yield ("cta_group::1", "kind::f16", "collector::b7::use"), operands


def lines(name: str) -> Iterator[Line]:
    """The spellings of one of these instructions, and some that are wrong."""
    head = tuple(name.split("."))
    for rest, operands in _operands(name):
        opcode = (*head, *rest)
        yield Line(opcode, operands, name, "variant")
        if ".mma" not in name:  # its last operands may be left out here
            yield Line(opcode, operands[:-1], name, "operand dropped")
        yield Line((*opcode, "sync"), operands, name, "qualifier added")
        for index in range(len(head), len(opcode)):
            yield Line((*opcode[:index], opcode[index] + "x", *opcode[index + 1 :]), operands, name, "misspelt")


def _operands(name: str) -> Iterator[tuple[tuple[str, ...], tuple[Sample, ...]]]:
    match name.partition(".")[2]:
        case "ld" | "st" as what:
            place, split = memory(reg("r", 1)), constant(16)
            for shape, each in _REGISTERS.items():
                for number in (1, 2, 8, 32, 64, 128):
                    held = _vector(min(number * each, 128))
                    rest = ("sync", "aligned", shape, f"x{number}", "b32")
                    if shape != "16x32bx2":
                        yield rest, (held, place) if what == "ld" else (place, held)
                    else:
                        yield rest, (held, place, split) if what == "ld" else (place, split, held)
        case "ld.red":
            for number in (1, 2, 8):
                for ending in (("min", "f32"), ("max", "abs", "NaN", "f32"), ("u32", "max"), ("abs", "min", "s32")):
                    operands = (
                        _vector(number),
                        reg("ff", 1) if "f32" in ending else reg("r", 140),
                        memory(reg("r", 1)),
                    )
                    yield ("sync", "aligned", "32x32b", f"x{number}", *ending), operands
                    yield ("sync", "aligned", "16x32bx2", f"x{number}", *ending), (*operands, constant(16))
                    yield ("sync", "aligned", "16x64b", f"x{number}", *ending), operands
        case "mma" | "mma.sp" as what:
            meta = (_tensor(7),) if what == "mma.sp" else ()
            yield from _products(meta, ("1", "2", "3"), "a")
            scales = (_tensor(5), _tensor(6))
            matrices = (_tensor(1), _descriptor(2), _descriptor(3), *meta)
            for kind in ("mxf8f6f4", "mxf4", "mxf4nvf4", "f16"):
                for size in (
                    (),
                    ("scale_vec::1X",),
                    ("scale_vec::2X",),
                    ("scale_vec::4X",),
                    ("block16",),
                    ("block32",),
                ):
                    head = ("cta_group::1", f"kind::{kind}", "block_scale", *size)
                    yield head, (*matrices, reg("r", 4), *scales, reg("p", 1))
            in_tensor = (_tensor(1), _tensor(2), _descriptor(3), *meta, reg("r", 4), reg("p", 1))
            for use in ((), ("fill",), ("use",), ("lastuse",), ("discard",)):
                collector = tuple(f"collector::a::{one}" for one in use)
                yield ("cta_group::1", "kind::f16", "ashift", *collector), in_tensor
        case "mma.ws" | "mma.ws.sp" as what:
            yield from _products((_tensor(7),) if what == "mma.ws.sp" else (), ("1", "2"), "b2")
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
