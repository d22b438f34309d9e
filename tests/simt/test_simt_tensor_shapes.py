"""The shapes of products of the tensor core, and what of their operands they access."""

from __future__ import annotations

import pytest

from mcheck.isa.opcode import read_opcode
from mcheck.simt.instructions.instruction_descriptors import Shape, product_footprint
from mcheck.simt.instructions.matrix_descriptors import Matrix
from tests.simt.tensor_kernels import describe


def shape(opcode: str, idesc: int) -> Shape:
    """The shape of a product."""
    return Shape.decode(read_opcode(tuple(opcode.split("."))), idesc)


PLAIN = tuple(range(8, 257, 8))
EVEN, QUADRUPLE = PLAIN[1::2], PLAIN[3::4]
SHAPES = {
    (kind, group, sparse): (rows, columns)
    for kinds, group, sparse, rows, columns in (
        (("f16", "tf32", "f8f6f4"), 1, False, (64, 128), PLAIN),
        (("f16", "tf32", "f8f6f4"), 1, True, (64, 128), PLAIN),
        (("f16", "tf32", "f8f6f4"), 2, False, (128, 256), EVEN),
        (("f16", "tf32", "f8f6f4"), 2, True, (128, 256), EVEN),
        (("i8",), 1, False, (64, 128), (8, 16, 24, *EVEN[1:])),
        (("i8",), 1, True, (64, 128), (8, 16, 24, *EVEN[1:])),
        (("i8",), 2, False, (128, 256), QUADRUPLE),
        (("i8",), 2, True, (128, 256), QUADRUPLE),
        (("mxf8f6f4", "mxf4", "mxf4nvf4"), 1, False, (128,), PLAIN),
        (("mxf8f6f4", "mxf4", "mxf4nvf4"), 1, True, (128,), PLAIN),
        (("mxf8f6f4", "mxf4", "mxf4nvf4"), 2, False, (128, 256), EVEN),
        (("mxf8f6f4", "mxf4", "mxf4nvf4"), 2, True, (256,), EVEN),
    )
    for kind in kinds
}
"""M and N by kind, ``cta_group`` and sparsity, without ``.ws``: the table of kinds and shapes in the PTX ISA."""
KEPT = {False: (64, 128, 256), True: (64, 128)}
"""N with ``.ws``, by sparsity; M is 32, 64 or 128."""


def legal_shapes(opcode: str, more: int = 0) -> set[tuple[int, int]]:
    """All M and N that are none of the descriptor's faults."""
    sizes = ((m, n) for m in range(0, 512, 16) for n in range(0, 512, 8))
    return {(m, n) for m, n in sizes if shape(opcode, describe(m, n, more=more)).problem() is None}


@pytest.mark.parametrize(("kind", "group", "sparse"), SHAPES)
def test_the_shapes_are_those_of_the_table(kind: str, group: int, sparse: bool) -> None:
    rows, columns = SHAPES[kind, group, sparse]
    end = ".block_scale.block32" if kind.startswith("mx") else ""
    opcode = f"tcgen05.mma{'.sp' * sparse}.cta_group::{group}.kind::{kind}{end}"
    assert legal_shapes(opcode) == {(m, n) for m in rows for n in columns}
    if kind in ("mxf4", "mxf4nvf4"):  # K = 96
        assert bool(legal_shapes(opcode, more=1 << 31)) is not sparse


@pytest.mark.parametrize("kind", ["f16", "tf32", "f8f6f4", "i8"])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_shapes_of_stationary_products_are_those_of_the_table(kind: str, sparse: bool) -> None:
    opcode = f"tcgen05.mma.ws{'.sp' * sparse}.cta_group::1.kind::{kind}"
    assert legal_shapes(opcode) == {(m, n) for m in (32, 64, 128) for n in KEPT[sparse]}


def test_a_sparse_product_of_two_ctas_uses_half_the_lanes_and_all_columns() -> None:
    idesc = describe(128, 64)
    sparse = product_footprint(shape("tcgen05.mma.sp.cta_group::2.kind::f16", idesc))
    dense = product_footprint(shape("tcgen05.mma.cta_group::2.kind::f16", idesc))
    assert (sum(high - low for low, high in sparse.d.lanes), sparse.d.columns) == (64, 64)
    assert (sum(high - low for low, high in dense.d.lanes), dense.d.columns) == (128, 32)


def test_metadata_are_where_the_selector_says() -> None:
    for selector in range(4):
        found = product_footprint(shape("tcgen05.mma.sp.cta_group::1.kind::f16", describe(128, 64, more=selector)))
        assert found.meta.columns == selector + 1
    assert product_footprint(shape("tcgen05.mma.sp.cta_group::1.kind::f8f6f4", describe(128, 64))).meta.columns == 2


@pytest.mark.parametrize(
    ("size", "scale_id", "columns"), [("block32", 0, 4), ("block32", 2, 8), ("block16", 0, 8), ("scale_vec::4X", 0, 8)]
)
def test_a_product_of_depth_96_reads_more(size: str, scale_id: int, columns: int) -> None:
    opcode, long = f"tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.{size}", 1 << 31 | scale_id << 29
    found = product_footprint(shape(opcode, describe(128, 64, more=long)))
    short = product_footprint(shape(opcode, describe(128, 64)))
    assert (found.a.depth, short.a.depth) == (48, 32)
    assert (found.a_cells.columns, short.a_cells.columns) == (12, 8)
    assert (found.scales[0].columns, short.scales[0].columns) == (columns, 4)


def test_a_second_part_of_48_bytes_has_an_address_of_its_own() -> None:
    swizzled, absolute = 2 << 61, 1 << 52
    descriptor = 0x100 | 0x400 << 16 | 0x40 << 32 | swizzled
    assert Matrix(8, 48).ranges(descriptor) == [(0x1000, 1024)]
    assert Matrix(8, 48).ranges(descriptor | absolute) == [(0x1000, 1024), (0x4000, 1024)]


def test_a_slice_longer_than_the_rest_of_its_row_reads_behind_it() -> None:
    swizzled = 0x106 | 0x40 << 32 | 2 << 61
    assert Matrix(8, 32).ranges(swizzled) == [(0x1000, 1024)]
    assert Matrix(8, 64).ranges(swizzled) == [(0x1000, 1056)]


def test_a_zero_column_mask_shifts_the_columns_of_b() -> None:
    found = shape("tcgen05.mma.ws.cta_group::1.kind::f16", describe(32, 64))
    assert (product_footprint(found).b.rows, product_footprint(found, 16).b.rows) == (64, 80)
