"""Footprints of tensor copies against an element-by-element reference, worked examples, limits, run-time conditions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace as with_fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcheck.base.errors import Unsupported
from mcheck.ir.memory import TensorMapSpec
from mcheck.semantics import tensor_footprint, tensor_map
from mcheck.semantics.undefined import Misuse

BASE = 0x1_0000_0000
SHARED = 0x100_0000_0000


def tiled(elemtype: str, dims: tuple[int, ...], box: tuple[int, ...], **fields: object) -> TensorMapSpec:
    size = tensor_map.element_size(elemtype)
    strides = list(itertools.accumulate((-(-dims[0] * size // 16) * 16, *dims[1:-1]), int.__mul__))
    values: dict[str, object] = {
        "global_address": BASE,
        "elemtype": elemtype,
        "rank": len(dims),
        "global_dim": dims,
        "global_stride": tuple(strides[: len(dims) - 1]),
        "element_stride": (1,) * len(dims),
        "box_dim": box,
    }
    return TensorMapSpec(**(values | fields))  # type: ignore[arg-type]


def im2col(dims: tuple[int, ...], lower: tuple[int, ...], upper: tuple[int, ...], **fields: object) -> TensorMapSpec:
    return tiled("u8", dims, (), pixel_box_lower_corner=lower, pixel_box_upper_corner=upper, **fields)


# --- the reference ------------------------------------------------------------------------------------


def flip(address: int, pairs: tuple[tuple[int, int], ...]) -> int:
    """The swizzle by its table: bit a is exchanged for its sum with bit b."""
    moved = address
    for a, b in pairs:
        moved ^= (address >> b & 1) << a
    return moved


SWIZZLES = {
    ("none", "16B"): (),
    ("32B", "16B"): ((4, 7),),
    ("64B", "16B"): ((4, 7), (5, 8)),
    ("128B", "16B"): ((4, 7), (5, 8), (6, 9)),
    ("128B", "32B"): ((5, 7), (6, 8)),
    ("128B", "32B+8B"): ((5, 7), (6, 8), (3, 7)),
    ("128B", "64B"): ((6, 7),),
    ("96B", "16B"): ((4, 7),),
}


def pixels(spec: TensorMapSpec, coords: tuple[int, ...], offsets: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """im2col by counting: all bases of the box in order from the start of the image, cut off before the first one."""
    lows = spec.pixel_box_lower_corner
    highs = [size - 1 + up for size, up in zip(spec.global_dim[1:], spec.pixel_box_upper_corner, strict=False)]
    first = True
    for image in itertools.count(coords[-1], spec.element_stride[-1]):
        starts = coords[1:-1] if first else lows
        w0, *rest0 = starts
        spatial = [
            range(low, high + 1, es) for low, high, es in zip(lows, highs, spec.element_stride[1:], strict=False)
        ]
        if first:
            yield from rest_of_image(w0, tuple(rest0), lows, highs, spec.element_stride[1:], image, offsets)
        else:
            for outer in itertools.product(*reversed(spatial[1:])):
                for w in spatial[0]:
                    yield (*(x + o for x, o in zip((w, *reversed(outer)), offsets, strict=True)), image)
        first = False


def rest_of_image(
    w0: int, rest: tuple[int, ...], lows: tuple[int, ...], highs: list[int], strides: tuple[int, ...], image: int,
    offsets: tuple[int, ...],
) -> Iterator[tuple[int, ...]]:  # fmt: skip
    """The bases from the start to the end of its image, by nested loops whose inner ones restart at the low corner."""

    def loops(level: int, fresh: bool) -> Iterator[tuple[int, ...]]:
        if level < 0:
            yield ()
            return
        begin = lows[level] if fresh else (w0, *rest)[level]
        for x in range(begin, highs[level] + 1, strides[level]):
            for inner in loops(level - 1, fresh or x != begin):
                yield (*inner, x)

    for base in loops(len(lows) - 1, False):
        yield (*(x + o for x, o in zip(base, offsets, strict=True)), image)


def reference(
    spec: TensorMapSpec, kind: str, mode: str, shared: int, coords: tuple[int, ...], offsets: tuple[int, ...] = ()
) -> tuple[dict[int, int | None], int]:
    """shared byte -> global byte or None, and the number of box bytes; one element at a time."""
    size = tensor_map.element_size(spec.elemtype)
    if mode.startswith("im2col"):
        assert spec.pixels_per_column is not None
        assert spec.channels_per_pixel is not None
        width = spec.channels_per_pixel
        walk = pixels(spec, coords, offsets or (0,) * (spec.rank - 2))
        rows = list(itertools.islice(walk, spec.pixels_per_column))
    elif mode == "tile":
        width = spec.box_dim[0]
        counts = [
            [coords[i] + k * spec.element_stride[i] for k in range(spec.box_dim[i]) if k * spec.element_stride[i] < n]
            for i, n in enumerate(spec.box_dim)
        ]
        rows = [tuple(reversed(xs)) for xs in itertools.product(*reversed(counts[1:]))]
    else:
        width = spec.box_dim[0]
        rows = [(row,) for row in coords[1:]]
    span = 0 if spec.swizzle_mode == "none" else int(spec.swizzle_mode[:-1])
    pitch = max(width * size, span)
    out: dict[int, int | None] = {}
    for index, row in enumerate(rows):
        for k in range(width):
            x = (coords[0] + k, *row)
            inside = all(0 <= c < n for c, n in zip(x, spec.global_dim, strict=True))
            address = spec.global_address + sum(c * t for c, t in zip(x, (size, *spec.global_stride), strict=True))
            for byte in range(size):
                at = flip(shared + index * pitch + k * size + byte, SWIZZLES[spec.swizzle_mode, spec.swizzle_atomicity])
                assert at not in out
                if inside:
                    out[at] = address + byte
                elif kind == "load":
                    out[at] = None
    return out, len(rows) * width * size


def unrolled(found: tuple[tensor_footprint.TensorRun, ...], shared: int) -> dict[int, int | None]:
    out: dict[int, int | None] = {}
    for run in found:
        for i in range(run.length):
            at = shared + run.offset + i
            assert at not in out
            out[at] = None if run.address is None else run.address + i
    return out


def agree(
    spec: TensorMapSpec, kind: str, mode: str, shared: int, coords: tuple[int, ...], offsets: tuple[int, ...] = ()
) -> None:
    found = tensor_footprint.footprint(spec, mode, coords, shared, kind=kind, info=offsets)
    expected, count = reference(spec, kind, mode, shared, coords, offsets)
    assert unrolled(found, shared) == expected
    assert tensor_footprint.box_bytes(spec, mode, offsets) == count


# --- random maps --------------------------------------------------------------------------------------


@st.composite
def tile_cases(draw: st.DrawFn) -> tuple[TensorMapSpec, str, int, tuple[int, ...]]:
    elemtype = draw(st.sampled_from(["u8", "f16", "f32", "f64"]))
    size = tensor_map.element_size(elemtype)
    rank = draw(st.integers(1, 5))
    mode, atomicity = draw(st.sampled_from(list(SWIZZLES)))
    span = {"none": 64}.get(mode) or int(mode[:-1])
    inner = 16 * draw(st.integers(1, max(1, span // 16))) // size
    dims = (draw(st.integers(1, 40)), *(draw(st.integers(1, 5)) for _ in range(rank - 1)))
    kind = "load" if atomicity == "32B+8B" else draw(st.sampled_from(["load", "store"]))
    spec = tiled(
        elemtype, dims, (inner, *(draw(st.integers(1, 4)) for _ in range(rank - 1))),
        element_stride=tuple(draw(st.integers(1, 3)) for _ in range(rank)),
        swizzle_mode=mode, swizzle_atomicity=atomicity,
    )  # fmt: skip
    low = 0 if kind == "store" else -2
    coords = (16 // size * draw(st.integers(low, 3)), *(draw(st.integers(low, 6)) for _ in range(rank - 1)))
    return spec, kind, SHARED + 128 * draw(st.integers(0, 9)), coords


@given(tile_cases())
def test_tiles(case: tuple[TensorMapSpec, str, int, tuple[int, ...]]) -> None:
    spec, kind, shared, coords = case
    agree(spec, kind, "tile", shared, coords)


@st.composite
def im2col_cases(draw: st.DrawFn) -> tuple[TensorMapSpec, str, tuple[int, ...], tuple[int, ...]]:
    rank = draw(st.integers(3, 5))
    store = draw(st.booleans())
    sizes = [draw(st.integers(2, 6)) for _ in range(rank - 2)]
    lower = [draw(st.integers(0 if store else -2, 1)) for _ in sizes]
    upper = [draw(st.integers(-1 if n > 2 else 0, 0 if store else 2)) for n in sizes]
    upper = [max(u, low + 1 - n) for u, low, n in zip(upper, lower, sizes, strict=True)]
    spec = im2col(
        (draw(st.integers(1, 40)), *sizes, draw(st.integers(1, 3))), tuple(lower), tuple(upper),
        element_stride=tuple(draw(st.integers(1, 3)) for _ in range(rank)),
        channels_per_pixel=16 * draw(st.integers(1, 2)), pixels_per_column=draw(st.integers(1, 40)),
        swizzle_mode=draw(st.sampled_from(["none", "32B"])),
    )  # fmt: skip
    base = [draw(st.integers(low, n - 1 + up)) for low, up, n in zip(lower, upper, sizes, strict=True)]
    coords = (16 * draw(st.integers(0 if store else -1, 2)), *base, draw(st.integers(0 if store else -1, 2)))
    offsets = () if store else tuple(draw(st.integers(0, 3)) for _ in sizes)
    return spec, "store" if store else "load", coords, offsets


@given(im2col_cases())
def test_im2col(case: tuple[TensorMapSpec, str, tuple[int, ...], tuple[int, ...]]) -> None:
    spec, kind, coords, offsets = case
    agree(spec, kind, "im2col" if kind == "load" else "im2col_no_offs", SHARED, coords, offsets)


@given(st.lists(st.integers(0, 9), min_size=4, max_size=4), st.integers(0, 3))
def test_four_rows(rows: list[int], column: int) -> None:
    spec = tiled("u32", (20, 8), (16, 1), swizzle_mode="64B")
    agree(spec, "load", "tile::gather4", SHARED, (4 * column, *(row - 1 for row in rows)))
    agree(spec, "store", "tile::scatter4", SHARED, (4 * column, *rows))


def walked(spec: TensorMapSpec, coords: tuple[int, ...], offsets: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [row[1:] for row in tensor_footprint._im2col_rows(spec, coords, offsets)]


def test_walks_of_the_documents() -> None:
    """The first and last pixels (W, H, N) of two examples of section 5.5.4."""
    first = im2col((64, 9, 14, 64), (-1, -1), (-1, -1), channels_per_pixel=8, pixels_per_column=64)
    path = walked(first, (0, 4, 7, 7), (0, 0))
    assert path[:5] == [(4, 7, 7), (5, 7, 7), (6, 7, 7), (7, 7, 7), (-1, 8, 7)]
    assert path[-1] == (4, 0, 8)
    second = im2col((64, 9, 14, 64), (0, 0), (-2, -2), channels_per_pixel=8, pixels_per_column=64)
    path = walked(second, (0, 4, 7, 7), (2, 2))
    assert path[:4] == [(6, 9, 7), (7, 9, 7), (8, 9, 7), (2, 10, 7)]
    assert path[-1] == (6, 6, 8)


# --- examples -----------------------------------------------------------------------------------------

PLAIN = tiled("f16", (64, 32), (64, 8), swizzle_mode="128B")


def test_whole_rows_are_one_run() -> None:
    spec = tiled("u8", (64, 8), (64, 4))
    assert tensor_footprint.footprint(spec, "tile", (0, 2), SHARED, kind="load") == (
        tensor_footprint.TensorRun(0, BASE + 128, 256),
    )


def test_edges_fill_on_load_and_skip_on_store() -> None:
    spec = tiled("u8", (16, 2), (32, 3))
    loaded = tensor_footprint.footprint(spec, "tile", (0, 0), SHARED, kind="load")
    assert [(r.offset, r.address, r.length) for r in loaded] == [
        (0, BASE, 16), (16, None, 16), (32, BASE + 16, 16), (48, None, 48),
    ]  # fmt: skip
    stored = tensor_footprint.footprint(spec, "tile", (0, 0), SHARED, kind="store")
    assert [(r.offset, r.address, r.length) for r in stored] == [(0, BASE, 16), (32, BASE + 16, 16)]
    assert tensor_footprint.box_bytes(spec, "tile") == 96


def test_a_narrow_row_keeps_the_pitch_of_its_span() -> None:
    spec = tiled("u8", (32, 4), (32, 2), swizzle_mode="64B")
    found = tensor_footprint.footprint(spec, "tile", (0, 0), SHARED, kind="load")
    assert {run.offset for run in found} == {0, 64}
    assert tensor_footprint.box_bytes(spec, "tile") == 64


def test_fill_patterns() -> None:
    assert tensor_map.fill_pattern(PLAIN) == b"\0"
    assert tensor_map.fill_pattern(with_fields(PLAIN, fill_mode="nan")) == b"\xf7\x7f"


# --- conditions ---------------------------------------------------------------------------------------

IMAGE = im2col((16, 4, 4, 2), (0, 0), (0, 0), channels_per_pixel=16, pixels_per_column=4)
ROWS = tiled("f32", (64, 32), (16, 1))


def copy(spec: TensorMapSpec, kind: str, mode: str, *coords: int, at: int = SHARED, off: tuple[int, ...] = ()) -> None:
    tensor_footprint.footprint(spec, mode, coords, at, kind=kind, info=off)


CHECKS: list[tuple[str, str | None, Callable[[], object]]] = [
    ("a load", None, lambda: copy(PLAIN, "load", "tile", 8, 0)),
    ("start at 8 bytes", "UB401", lambda: copy(PLAIN, "load", "tile", 4, 0)),
    ("store at 8 bytes", "UB401", lambda: copy(PLAIN, "store", "tile", 4, 0)),
    ("negative load", None, lambda: copy(PLAIN, "load", "tile", -8, -3)),
    ("negative store", "UB402", lambda: copy(PLAIN, "store", "tile", 0, -1)),
    ("negative scatter", "UB402", lambda: copy(ROWS, "store", "tile::scatter4", 0, 1, 2, -3, 4)),
    ("gather of a box of rows", "UB404", lambda: copy(PLAIN, "load", "tile::gather4", 0, 1, 2, 3, 4)),
    ("gather of three rows", "UB404", lambda: copy(ROWS, "load", "tile::gather4", 0, 1, 2, 3)),
    ("scatter as a load", "UB404", lambda: copy(ROWS, "load", "tile::scatter4", 0, 1, 2, 3, 4)),
    ("one dimension of two", "UB404", lambda: copy(PLAIN, "load", "tile", 0)),
    ("im2col of a tiled map", "UB404", lambda: copy(PLAIN, "load", "im2col", 0, 0, off=())),
    ("tile of an im2col map", "UB404", lambda: copy(IMAGE, "load", "tile", 0, 0, 0, 0)),
    ("swizzled at 64", "UB102", lambda: copy(PLAIN, "load", "tile", 0, 0, at=SHARED + 64)),
    ("plain at 16", "UB102", lambda: copy(ROWS, "load", "tile", 0, 0, at=SHARED + 16)),
    ("plain at 8", "UB102", lambda: copy(ROWS, "load", "tile", 0, 0, at=SHARED + 8)),
    ("flip store", "UB404", lambda: copy(with_fields(PLAIN, swizzle_atomicity="32B+8B"), "store", "tile", 0, 0)),
    ("im2col", None, lambda: copy(IMAGE, "load", "im2col", 0, 0, 0, 0, off=(255, 0))),
    ("im2col offset", "UB405", lambda: copy(IMAGE, "load", "im2col", 0, 0, 0, 0, off=(256, 0))),
    ("im2col offsets missing", "UB404", lambda: copy(IMAGE, "load", "im2col", 0, 0, 0, 0, off=(1,))),
    ("im2col base outside", "UB405", lambda: copy(IMAGE, "load", "im2col", 0, 4, 0, 0, off=(0, 0))),
    ("im2col store", None, lambda: copy(IMAGE, "store", "im2col_no_offs", 0, 0, 0, 0)),
    (
        "im2col store beyond",
        "UB404",
        lambda: copy(with_fields(IMAGE, pixel_box_lower_corner=(-1, 0)), "store", "im2col_no_offs", 0, 0, 0, 0),
    ),
    ("a huge box", "UB404", lambda: copy(tiled("u8", (16,) * 5, (16, 256, 256, 256, 256)), "load", "tile", *(0,) * 5)),
    ("add f16", None, lambda: tensor_footprint.check_copy(PLAIN, "store", 2, "tile", SHARED, (0, 0), reduce="add")),
    (
        "xor of u32",
        None,
        lambda: tensor_footprint.check_copy(tiled("u32", (4,), (4,)), "store", 1, "tile", 0, (0,), reduce="xor"),
    ),
    (
        "xor of f16",
        "UB404",
        lambda: tensor_footprint.check_copy(PLAIN, "store", 2, "tile", SHARED, (0, 0), reduce="xor"),
    ),
    (
        "inc of s32",
        "UB404",
        lambda: tensor_footprint.check_copy(tiled("s32", (4,), (4,)), "store", 1, "tile", 0, (0,), reduce="inc"),
    ),
]


@pytest.mark.parametrize(("code", "check"), [c[1:] for c in CHECKS], ids=[c[0] for c in CHECKS])
def test_conditions(code: str | None, check: Callable[[], object]) -> None:
    if code is None:
        check()
        return
    with pytest.raises(Misuse) as caught:
        check()
    assert caught.value.code == code


LIMITS = [
    ({"global_address": BASE + 8}, "global_address"),
    ({"global_stride": (72,)}, "global_stride[0]"),
    ({"global_stride": (1 << 40,)}, "global_stride[0]"),
    ({"global_stride": ()}, "global_stride"),
    ({"global_dim": (0, 32)}, "global_dim[0]"),
    ({"element_stride": (1, 9)}, "element_stride[1]"),
    ({"box_dim": (64, 257)}, "box_dim[1]"),
    ({"box_dim": (4, 8)}, "multiple of 16"),
    ({"box_dim": (128, 8)}, "takes up to 128"),
    ({"swizzle_mode": "64B", "box_dim": (32, 8), "swizzle_atomicity": "32B"}, "swizzle_atomicity"),
    ({"elemtype": "u16", "fill_mode": "nan"}, "fill_mode"),
    ({"rank": 6}, "rank"),
    ({"rank": 0}, "rank"),
]


@pytest.mark.parametrize(("fields", "words"), LIMITS, ids=[w for _, w in LIMITS])
def test_limits(fields: dict[str, object], words: str) -> None:
    assert tensor_map.violations(PLAIN) == ()
    broken = tensor_map.violations(with_fields(PLAIN, **fields))  # type: ignore[arg-type]
    assert len(broken) == 1
    assert words in broken[0]


IM2COL_LIMITS = [
    ({"pixel_box_lower_corner": (-129, 0)}, "pixel_box_lower_corner[0]"),
    ({"pixel_box_upper_corner": (0, 128)}, "pixel_box_upper_corner[1]"),
    ({"pixel_box_upper_corner": (-4, 0)}, "empty in dimension 1"),
    ({"channels_per_pixel": 272}, "channels_per_pixel"),
    ({"channels_per_pixel": 8}, "multiple of 16"),
    ({"pixels_per_column": 1025}, "pixels_per_column"),
    ({"rank": 2}, "rank"),
]


@pytest.mark.parametrize(("fields", "words"), IM2COL_LIMITS, ids=[w for _, w in IM2COL_LIMITS])
def test_im2col_limits(fields: dict[str, object], words: str) -> None:
    assert tensor_map.violations(IMAGE) == ()
    broken = tensor_map.violations(with_fields(IMAGE, **fields))  # type: ignore[arg-type]
    assert len(broken) == 1
    assert words in broken[0]


@pytest.mark.parametrize(
    "spec",
    [with_fields(IMAGE, interleave_layout="16B"), with_fields(PLAIN, elemtype="b4x16")],
    ids=["interleaved im2col", "b4"],
)
def test_unsupported_maps(spec: TensorMapSpec) -> None:
    with pytest.raises(Unsupported):
        tensor_footprint.footprint(spec, "tile", (0, 0), SHARED, kind="load")


def test_unsupported_modes() -> None:
    """No document says where the halo of im2col::w goes."""
    image = with_fields(IMAGE, swizzle_mode="64B")
    assert tensor_footprint.footprint(image, "im2col::w", (0, 0, 0, 0), SHARED, kind="load", info=(0, 0))
    with pytest.raises(Unsupported, match="halo"):
        tensor_footprint.footprint(image, "im2col::w", (0, 0, 0, 0), SHARED, kind="load", info=(3, 0))


# --- tensormap.replace --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "ordinal", "expected"),
    [
        ("global_address", 0x5000, None, {"global_address": 0x5000}),
        ("box_dim", 16, 1, {"box_dim": (64, 16)}),
        ("global_dim", 100, 0, {"global_dim": (100, 32)}),
        ("global_dim", 7, 3, {"global_dim": (64, 32, 1, 7)}),
        ("global_stride", 256, 0, {"global_stride": (256,)}),
        ("element_stride", 2, 1, {"element_stride": (1, 2)}),
        ("elemtype", 6, None, {"elemtype": "f16"}),
        ("elemtype", 12, None, {"elemtype": "tf32.ftz"}),
        ("elemtype", 14, None, {"elemtype": "b4x16_p64"}),
        ("elemtype", 15, None, {"elemtype": "b6x16_p32"}),
        ("interleave_layout", 2, None, {"interleave_layout": "32B"}),
        ("swizzle_mode", 0, None, {"swizzle_mode": "none"}),
        ("swizzle_mode", 4, None, {"swizzle_mode": "96B"}),
        ("swizzle_atomicity", 2, None, {"swizzle_atomicity": "32B+8B"}),
        ("fill_mode", 1, None, {"fill_mode": "nan"}),
        ("rank", 0, None, {"rank": 1}),
        (
            "rank", 2, None,
            {"rank": 3, "global_dim": (64, 32, 1), "global_stride": (128, 0), "box_dim": (64, 8, 1),
             "element_stride": (1, 1, 1)},
        ),
    ],
)  # fmt: skip
def test_replace(field: str, value: int, ordinal: int | None, expected: dict[str, object]) -> None:
    changed = tensor_map.replace_field(PLAIN, field, value, ordinal)
    assert changed == with_fields(PLAIN, **expected)  # type: ignore[arg-type]
    if field != "elemtype" or value < 13:
        tensor_map.violations(with_fields(changed, interleave_layout="none"))


@pytest.mark.parametrize(
    ("field", "value", "ordinal"),
    [("elemtype", 16, None), ("swizzle_mode", 5, None), ("box_dim", 1, 5), ("global_stride", 16, 4), ("rank", 5, None)],
)
def test_replace_without_meaning(field: str, value: int, ordinal: int | None) -> None:
    with pytest.raises(Misuse) as caught:
        tensor_map.replace_field(PLAIN, field, value, ordinal)
    assert caught.value.code == "UB109"


def test_rank_goes_back_and_forth() -> None:
    narrow = tensor_map.replace_field(PLAIN, "rank", 0)
    assert tensor_footprint.box_bytes(narrow, "tile") == 128
    assert tensor_map.replace_field(narrow, "rank", 1) == PLAIN
