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
LONG_DEPTH = 48
"""The same with K = 96, which bit 31 of the descriptor asks for (PTX ISA 9.7.17.4.2 of version 9.3)."""
ELEMENTS = {"kind::f16": 2, "kind::tf32": 4}
"""Bytes of an element; 1 for all other kinds, whose elements are no larger."""
SCALED = ("kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4")
SHORT = ("kind::mxf4", "kind::mxf4nvf4")
"""The kinds whose elements have four bits."""
HALVES = ((0, 16), (32, 48), (64, 80), (96, 112))
"""The lanes of 64 rows (9.7.16.10.5, layouts C and F)."""
FIRSTS = ((0, 4), (32, 36), (64, 68), (96, 100))
"""The lanes of ``4x256b``. The text does not say which four: the first ones, or one of each warp, as a shift leaves."""
COPIED = {"128x256b": (128, 32), "4x256b": (4, 32), "128x128b": (128, 16), "64x128b": (64, 16), "32x128b": (32, 16)}
"""Rows of a ``cp``, and the bytes of each."""
ROWS = {
    (1, False): (64, 128),
    (1, True): (32, 64, 128),
    (2, False): (128, 256),
}
"""M by CTAs, and whether it is ``.ws`` (9.7.16.2.1)."""


@dataclass(frozen=True, slots=True)
class Shape:
    """``m`` and ``n`` of the whole product, of ``ctas`` CTAs; elements have ``element`` bytes, and ``depth`` bytes of
    each row are multiplied. ``selector`` says which sub-columns hold the metadata, ``scale_ids`` which hold the scales.
    """

    kind: str
    m: int
    n: int
    ctas: int
    element: int
    a_transposed: bool
    b_transposed: bool
    sparse: bool
    stationary: bool
    shifted: bool
    depth: int
    selector: int
    scale_ids: tuple[int, int]
    small_blocks: bool

    @staticmethod
    def decode(opcode: Opcode, descriptor: int) -> Shape:
        """Decode an opcode and an instruction descriptor."""
        kind = opcode.prefixed("kind::") or "kind::f16"
        long = kind in SHORT and descriptor >> 31 & 1
        return Shape(
            kind=kind,
            m=(descriptor >> 24 & 31) << 4,
            n=(descriptor >> 17 & 63) << 3,
            ctas=2 if opcode.has("cta_group::2") else 1,
            element=ELEMENTS.get(kind, 1),
            a_transposed=bool(descriptor >> 15 & 1),
            b_transposed=bool(descriptor >> 16 & 1),
            sparse=opcode.has("sp"),
            stationary=opcode.has("ws"),
            shifted=opcode.has("ashift"),
            depth=LONG_DEPTH if long else DEPTH,
            selector=0 if kind in SCALED else descriptor & 3,
            scale_ids=(descriptor >> 29 & 3, descriptor >> 4 & 3),
            small_blocks=opcode.has("block16", "scale_vec::4X"),
        )

    @property
    def is_halved(self) -> bool:
        """Whether only half of the lanes are used: layouts C and F (9.7.16.10.5)."""
        if self.ctas == 2:
            return self.m == TENSOR_LANES and self.sparse
        return self.m == 64 and not self.stationary

    def problem(self) -> str | None:
        """Why there is no product of this shape (9.7.16.2.1)."""
        rows = ROWS.get((self.ctas, self.stationary), ())
        if self.kind in SCALED:
            rows = (256,) if self.ctas == 2 and self.sparse else tuple(m for m in rows if m >= TENSOR_LANES)
        if self.m not in rows:
            return f"has an instruction descriptor with M = {self.m}, not {_either(rows)}"
        if self.stationary:
            columns = (64, 128) if self.sparse else (64, 128, 256)
            if self.n not in columns:
                return f"has an instruction descriptor with N = {self.n}, not {_either(columns)}"
        step = 8 * self.ctas
        if self.kind == "kind::i8" and (self.ctas == 2 or self.n > 32):
            step *= 2
        if not 0 < self.n <= 256 or self.n % step:
            return f"has an instruction descriptor with N = {self.n}, not a multiple of {step} up to 256"
        if self.sparse and self.depth == LONG_DEPTH:
            return "has an instruction descriptor with K = 96, which only products of dense matrices have"
        if self.shifted and self.m < TENSOR_LANES:
            return f"has .ashift with M = {self.m}, not 128 or 256"
        return None

    def lane_problem(self, lanes: list[int]) -> str | None:
        """What is wrong with the lanes at which D, A and the metadata begin: the first ones are (9.7.16.10.5)."""
        allowed = (0, 16) if self.is_halved else (0,)
        for lane in lanes:
            if lane not in allowed:
                return f"has a matrix from lane {lane} of tensor memory on, not from {_either(allowed)}"
        return None if len(set(lanes)) == 1 else "has matrices at different lanes of tensor memory"


def _either(numbers: tuple[int, ...]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} or {last}" if most else last


@dataclass(frozen=True, slots=True)
class Product:
    """The memory accessed by one CTA's part of a product."""

    a: Matrix
    b: Matrix
    a_cells: Rectangle
    d: Rectangle
    meta: Rectangle
    scales: tuple[Rectangle, Rectangle]


def product_footprint(shape: Shape, column_shift: int = 0) -> Product:
    """The footprints in each participating CTA. ``column_shift`` is how many columns of B a zero-column mask skips."""
    rows, columns = max(shape.m // shape.ctas, 1), shape.n
    lanes = HALVES if shape.is_halved else WHOLE
    if shape.ctas == 2:
        if shape.m == TENSOR_LANES and not shape.sparse:  # the columns' halves lie side by side
            columns = shape.n // 2
    elif shape.m < TENSOR_LANES and shape.stationary:
        columns = max(shape.n * shape.m // TENSOR_LANES, 1)
    depth = shape.depth // shape.element
    both = 2 if shape.sparse else 1
    return Product(
        a=_operand_matrix(rows, depth, shape.a_transposed, shape.element),
        b=_operand_matrix(shape.n // shape.ctas + column_shift, depth * both, shape.b_transposed, shape.element),
        a_cells=Rectangle(lanes, shape.depth // 4),
        d=Rectangle(lanes, columns),
        meta=Rectangle(lanes, shape.selector + 1 if shape.element > 1 else 2),
        scales=(_scale_cells(shape, rows, shape.scale_ids[0]), _scale_cells(shape, shape.n, shape.scale_ids[1])),
    )


def _scale_cells(shape: Shape, rows: int, first: int) -> Rectangle:
    """The cells of the scales of so many rows, four to a cell; three or six with K = 96 may reach into a second one."""
    words = 2 if shape.depth == LONG_DEPTH and (shape.small_blocks or first > 1) else 1
    return Rectangle(WHOLE, words * -(-rows // 32))


def _operand_matrix(rows: int, depth: int, transposed: bool, element: int) -> Matrix:
    return Matrix(rows, depth if transposed else depth * element, transposed, element)


def copy_footprint(statement: ptx.Statement) -> tuple[Rectangle, Matrix]:
    """The cells that ``cp`` writes, and the matrix in shared memory that it reads."""
    shape = statement.opcode.choice(COPIED)
    if shape is None:
        raise Unsupported(f"'{statement.text}' is not followed", statement.span)
    rows, depth = COPIED[shape]
    lanes = FIRSTS if shape == "4x256b" else WHOLE  # 32 and 64 rows are repeated in all lanes
    return Rectangle(lanes, depth // 4), Matrix(rows, depth)
