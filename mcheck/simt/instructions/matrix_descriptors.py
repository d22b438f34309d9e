"""The bytes that the descriptor of a matrix in shared memory covers (PTX ISA 9.7.15.5.1, "matrix descriptor").

Rows are assumed to be as wide as the swizzle, so that a slice of a swizzled tile counts as all of its rows: a copy
fills the tile, and a wgmma that reads a part of it reads before the tile is released. Where a slice is longer than what
is left of a row, the bytes behind the rows count as well.
"""

from __future__ import annotations

from mcheck.base.errors import Unsupported
from mcheck.base.records import dataclass
from mcheck.effects.ranges import join_ranges
from mcheck.frontend.ptx import module as ptx

ADDRESS_BITS = (1 << 14) - 1
CHUNK = 16
ROWS = 8
"""The rows of a core matrix."""
WIDTHS = {0: 16, 1: 128, 2: 64, 3: 32}
"""Bytes of a row of a core matrix group, by the swizzle mode in bits 62 and 63; of tcgen05 bit 61 alone is one more
mode of 128 bytes (9.7.16.4.1).
"""


@dataclass(frozen=True, slots=True)
class Matrix:
    """``rows`` of the M or N dimension, ``depth`` bytes of K if K is the leading dimension of memory; transposed,
    ``depth`` rows of K, and ``rows`` elements of ``element`` bytes in each.
    """

    rows: int
    depth: int
    transposed: bool = False
    element: int = 2

    def ranges(self, descriptor: int) -> list[tuple[int, int]]:
        """Offsets in the shared window, with sizes; adjacent ranges are joined."""
        start = (descriptor & ADDRESS_BITS) << 4
        leading = (descriptor >> 16 & ADDRESS_BITS) << 4
        stride = (descriptor >> 32 & ADDRESS_BITS) << 4
        width = 128 if descriptor >> 61 == 1 else WIDTHS[descriptor >> 62 & 3]
        if self.transposed:
            found = self._transposed(start, leading, stride, width)
        elif descriptor >> 52 & 1:  # the second part of 48 bytes is in rows of its own (9.7.17.3.1.2 of PTX 9.3)
            groups = range(-(-self.rows // ROWS))
            bases = [at // width * width for at in (start, leading)]
            found = [(base + i * stride, ROWS * width) for base in bases for i in groups]
        elif width == CHUNK:
            found = [
                (start + i * stride + j * leading, ROWS * CHUNK)
                for i in range(-(-self.rows // ROWS))
                for j in range(max(self.depth // CHUNK, 1))
            ]
        else:
            base = start // width * width
            over = max(start - base + self.depth - width, 0)
            found = [(base + i * stride, ROWS * width + over) for i in range(-(-self.rows // ROWS))]
        return list(join_ranges(found))

    def _transposed(self, start: int, leading: int, stride: int, width: int) -> list[tuple[int, int]]:
        """Eight rows of K of ``width`` bytes each make an atom (its neighbours: along M or N, along K)."""
        across = -(-self.rows * self.element // width)
        down = max(self.depth // ROWS, 1)
        if width == CHUNK:
            return [(start + i * stride + j * leading, ROWS * CHUNK) for i in range(across) for j in range(down)]
        base = start // width * width
        return [(base + i * leading + j * stride, ROWS * width) for i in range(across) for j in range(down)]


INVALID_SWIZZLES = (3, 5, 7)


def descriptor_problem(descriptor: int) -> str | None:
    """What is wrong with the descriptor of a matrix of ``tcgen05`` (9.7.16.4.1)."""
    mode = descriptor >> 61 & 7
    return f"has a matrix descriptor with swizzle mode {mode}, which is none" if mode in INVALID_SWIZZLES else None


_SIZES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1, "b1": 1}


def described_matrices(statement: ptx.Statement) -> list[tuple[ptx.Operand, Matrix]]:
    """The descriptors of a ``wgmma.mma_async``, each with the shape of its matrix."""
    shape = statement.opcode.prefixed("m64n")
    kinds = [p for p in statement.opcode.parts if p in _SIZES]
    if shape is None or not kinds:
        raise Unsupported(f"'{statement.text}' is not followed", statement.span)
    columns, _, depth = shape[4:].partition("k")
    kind, operands = kinds[-1], statement.operands[1:]
    size = int(depth) * _SIZES[kind] if kind != "b1" else int(depth) // 8
    a_in_memory = not isinstance(operands[0], ptx.Vector)
    flags = [o.value for o in operands[2:] if isinstance(o, ptx.Immediate)]
    transposed = (0, 0)
    if kind in ("f16", "bf16"):
        last = flags[-2:] if a_in_memory else [0, *flags[-1:]]
        if len(last) == 2 and len(flags) >= (4 if a_in_memory else 3):
            transposed = last[0], last[1]
    out: list[tuple[ptx.Operand, Matrix]] = []
    if a_in_memory:
        out.append((operands[0], _matrix(64, size, int(depth), bool(transposed[0]), _SIZES[kind])))
    out.append((operands[1], _matrix(int(columns), size, int(depth), bool(transposed[1]), _SIZES[kind])))
    return out


def _matrix(rows: int, size: int, depth: int, transposed: bool, element: int) -> Matrix:
    return Matrix(rows, depth if transposed else size, transposed, element)
