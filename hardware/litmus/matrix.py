"""``wgmma`` of a test as the chip takes it: descriptors of its operands, all registers of its result.

A test says which bytes of shared memory are read. They are laid out without a swizzle, in core matrices of eight rows
of 16 bytes, one after the other (PTX ISA 9.7.15.5.1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hardware.emit import CannotEmit
from mcheck.ir import ops

CORE_ROWS = 8
CORE_BYTES = 128


@dataclass(frozen=True, slots=True)
class Tile:
    """A result: the registers that the test names for it, which may be less than it has, their number, its number."""

    names: tuple[str, ...]
    registers: int
    number: int

    def all(self, k: int) -> list[str]:
        """Its registers."""
        return [f"%d{k}_{self.number}_{n}" for n in range(self.registers)]


_OPCODE = re.compile(r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k16\.f32\.(f16|bf16)\.\2\b")


@dataclass(frozen=True, slots=True)
class Shape:
    """Rows of the first operand and columns of the second, the element type, registers of the result in a thread."""

    m: int
    n: int
    kind: str

    @property
    def registers(self) -> int:
        """f32 registers of each thread: 128 threads share the 64 rows."""
        return self.m * self.n // 128


def shape(op: ops.Wgmma) -> Shape:
    """The shape of an instruction; raises ``CannotEmit`` for forms that no test has so far."""
    found = _OPCODE.search(op.text)
    if found is None or len(op.reads) != 2:
        raise CannotEmit("another form of wgmma than f32 += f16 * f16 from shared memory")
    return Shape(64, int(found.group(1)), found.group(2))


def descriptor(out: str, word: str, start: str, size: int, rows: int) -> list[str]:
    """The descriptor of ``size`` bytes at the shared address in ``start``, with two core matrices along k."""
    stride = size // (rows // CORE_ROWS)
    if stride < 2 * CORE_BYTES or stride % 32:
        raise CannotEmit(f"an operand of wgmma with {size} bytes")
    fixed = (stride // 2 // 16) << 16 | (stride // 16) << 32
    return [
        f"and.b32 {word}, {start}, 0x3ffff;",
        f"shr.u32 {word}, {word}, 4;",
        f"cvt.u64.u32 {out}, {word};",
        f"or.b64 {out}, {out}, 0x{fixed:x};",
    ]


def instruction(given: Shape, k: int, result: Tile, a: str, b: str) -> str:
    """The instruction, which adds to its result."""
    opcode = f"wgmma.mma_async.sync.aligned.m64n{given.n}k16.f32.{given.kind}.{given.kind}"
    return f"{opcode} {{{', '.join(result.all(k))}}}, {a}, {b}, %add{k}, 1, 1, 0, 0;"
