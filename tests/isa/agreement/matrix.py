"""``wgmma.mma_async``: what the table writes as a byte range the assembler reads as a descriptor."""

from __future__ import annotations

from collections.abc import Iterator

from tests.isa.agreement.sample import Line, Sample, constant, memory, negated, reg, vector

NAME = "wgmma.mma_async"
_HEAD = (*NAME.split("."), "sync", "aligned")

_KINDS: tuple[tuple[int, tuple[tuple[str, str, str], ...], tuple[str, ...]], ...] = (
    (16, (("f32", "f16", "f16"), ("f16", "f16", "f16"), ("f32", "bf16", "bf16")), ()),
    (16, (("f32", "f16", "bf16"), ("f16", "bf16", "bf16"), ("s32", "f16", "f16")), ()),
    (8, (("f32", "tf32", "tf32"), ("f16", "tf32", "tf32")), ()),
    (32, (("f32", "e4m3", "e5m2"), ("f16", "e5m2", "e5m2"), ("f32", "f16", "f16")), ()),
    (32, (("s32", "s8", "u8"), ("s32", "u8", "u8")), ()),
    (32, (("s32", "s8", "s8"), ("f32", "s8", "s8"), ("f32", "e4m3", "e4m3")), ("satfinite",)),
    (256, (("s32", "b1", "b1"), ("s32", "s8", "s8")), ("and", "popc")),
    (256, (("s32", "b1", "b1"),), ()),
    (256, (("s32", "b1", "b1"),), ("or", "popc")),
)
"""Depth, types of result and inputs, further qualifiers: legal ones and their neighbours."""

_WIDTHS = (8, 16, 24, 40, 64, 128, 144, 248, 256)


def _range(number: int) -> Sample:
    """A descriptor register to the assembler, a byte range to the table."""
    written = memory(reg("rd", number), constant(1024))
    return Sample(f"rd{number}", written.operand)


def _accumulators(result: str, n: int) -> Sample:
    prefix, count = ("r", n // 4) if result == "f16" else ("ff" if result == "f32" else "r", n // 2)
    return vector([reg(prefix, number) for number in range(1, count + 1)])


def _trailing(inputs: str, in_memory: bool) -> tuple[Sample, ...]:
    """All that the assembler wants after the matrices."""
    one, zero = constant(1), constant(0)
    if inputs in ("s8", "u8", "b1"):
        return (reg("p", 1),)
    if inputs in ("f16", "bf16"):
        return (reg("p", 1), one, one, *((zero,) if in_memory else ()), zero)
    return (reg("p", 1), one, constant(-1))


def lines() -> Iterator[Line]:
    """Shapes, types and operands of the matrix instruction."""
    for depth, types, rest in _KINDS:
        for kinds in types:
            for n in _WIDTHS:
                opcode = (*_HEAD, f"m64n{n}k{depth}", *kinds, *rest)
                d = _accumulators(kinds[0], n)
                tail = _trailing(kinds[1], in_memory=True)
                yield Line(opcode, (d, _range(1), _range(2), *tail), NAME, "variant")
                if n > 16:
                    continue
                a = vector([reg("r", number) for number in range(140, 144)])
                yield Line(opcode, (d, a, _range(2), *_trailing(kinds[1], in_memory=False)), NAME, "registers")
                yield Line(opcode, (d, a, _range(2), *tail), NAME, "registers")
                yield Line(opcode, (d, _range(1), _range(2), *tail, constant(0)), NAME, "operand added")
                yield Line(opcode, (d, _range(1), a, *tail), NAME, "other operand")
                yield Line(opcode, (d, _range(1), _range(2), constant(2), *tail[1:]), NAME, "constant")
                yield Line(opcode, (d, _range(1), _range(2), negated(1), *tail[1:]), NAME, "other operand")
                yield Line(opcode, (_range(1), d, _range(2), *tail), NAME, "operands exchanged")
                for index in range(len(tail)):
                    changed = (*tail[:index], constant(3), *tail[index + 1 :])
                    yield Line(opcode, (d, _range(1), _range(2), *changed), NAME, "constant")
    full = (*_HEAD, "m64n8k16", "f32", "f16", "f16")
    operands = (_accumulators("f32", 8), _range(1), _range(2), *_trailing("f16", in_memory=True))
    for index in range(2, len(full)):
        yield Line((*full[:index], *full[index + 1 :]), operands, NAME, "qualifier dropped")
        yield Line((*full[:index], full[index] + "x", *full[index + 1 :]), operands, NAME, "qualifier misspelt")
    for n in (4, 12, 264, 512):
        yield Line((*_HEAD, f"m64n{n}k16", "f32", "f16", "f16"), operands, NAME, "variant")
    yield Line((*_HEAD, "m32n8k16", "f32", "f16", "f16"), operands, NAME, "variant")
