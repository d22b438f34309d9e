"""The shapes of ``tcgen05.mma`` and ``cp`` from the instruction descriptor (PTX ISA 9.7.16.4.2), with the locations of
matrices, accumulators, scales and metadata.
"""

from __future__ import annotations

from mcheck.base.errors import Unsupported
from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.ir.memory import TENSOR_LANES
from mcheck.isa.opcode import Opcode
from mcheck.simt.execution.tensor_memory import WHOLE, Rectangle
from mcheck.simt.instructions.matrix_descriptors import Matrix

DEPTH = 32
"""Bytes of a row of A and of B that one mma multiplies, whatever the kind (9.7.16.2.1)."""
ELEMENTS = {"kind::f16": 2, "kind::tf32": 4}
"""Bytes of an element; 1 for all other kinds, whose elements are no larger."""
SCALED = ("kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4")
HALVES = ((0, 16), (32, 48), (64, 80), (96, 112))
"""The lanes of 64 rows (9.7.16.10.5, layout F)."""
COPIED = {"128x256b": (128, 32), "4x256b": (4, 32), "128x128b": (128, 16), "64x128b": (64, 16), "32x128b": (32, 16)}
"""Rows of a ``cp``, and the bytes of each."""


@dataclass(frozen=True, slots=True)
class Shape:
    """``m`` and ``n`` of the whole product, of ``ctas`` CTAs; elements have ``element`` bytes."""

    m: int
    n: int
    ctas: int
    element: int
    a_transposed: bool
    b_transposed: bool
    sparse: bool
    stationary: bool

    @staticmethod
    def decode(opcode: Opcode, descriptor: int) -> Shape:
        """Decode an opcode and an instruction descriptor."""
        kind = opcode.prefixed("kind::") or "kind::f16"
        return Shape(
            m=(descriptor >> 24 & 31) << 4,
            n=(descriptor >> 17 & 63) << 3,
            ctas=2 if opcode.has("cta_group::2") else 1,
            element=ELEMENTS.get(kind, 1),
            a_transposed=bool(descriptor >> 15 & 1),
            b_transposed=bool(descriptor >> 16 & 1),
            sparse=opcode.has("sp"),
            stationary=opcode.has("ws"),
        )


@dataclass(frozen=True, slots=True)
class Product:
    """The memory accessed by one CTA's part of a product."""

    a: Matrix
    b: Matrix
    a_cells: Rectangle
    d: Rectangle
    meta: Rectangle
    scales: tuple[Rectangle, Rectangle]


def product_footprint(shape: Shape) -> Product:
    """The footprints in each participating CTA."""
    rows, columns = max(shape.m // shape.ctas, 1), shape.n
    lanes: tuple[tuple[int, int], ...] = WHOLE
    if shape.ctas == 2:
        if shape.m == TENSOR_LANES:  # 64 rows in each CTA: the columns' halves lie side by side
            columns = shape.n // 2
    elif shape.m == 64 and not shape.stationary:
        lanes = HALVES
    elif shape.m < TENSOR_LANES:
        columns = max(shape.n * shape.m // TENSOR_LANES, 1)
    depth = DEPTH // shape.element
    both = 2 if shape.sparse else 1
    return Product(
        a=_operand_matrix(rows, depth, shape.a_transposed, shape.element),
        b=_operand_matrix(max(shape.n // shape.ctas, 1), depth * both, shape.b_transposed, shape.element),
        a_cells=Rectangle(lanes, DEPTH // 4),
        d=Rectangle(lanes, columns),
        meta=Rectangle(lanes, 1 if shape.element > 1 else 2),
        scales=(Rectangle(WHOLE, -(-rows // 32)), Rectangle(WHOLE, -(-shape.n // 32))),
    )


def _operand_matrix(rows: int, depth: int, transposed: bool, element: int) -> Matrix:
    return Matrix(rows, depth if transposed else depth * element, transposed, element)


def copy_footprint(statement: ptx.Statement) -> tuple[Rectangle, Matrix]:
    """The cells that ``cp`` writes, and the matrix in shared memory that it reads."""
    shape = statement.opcode.choice(COPIED)
    if shape is None:
        raise Unsupported(f"'{statement.text}' is not followed", statement.span)
    rows, depth = COPIED[shape]
    lanes = ((0, rows),) if shape == "4x256b" else WHOLE  # 32 and 64 rows are repeated in all lanes
    return Rectangle(lanes, depth // 4), Matrix(rows, depth)
