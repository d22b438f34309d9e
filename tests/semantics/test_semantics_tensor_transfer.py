"""Whole-array copies and reductions against the byte-by-byte footprints and the scalar definitions."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcheck.ir.address_map import lay_out
from mcheck.ir.memory import Cta, MemObject, TensorMapSpec
from mcheck.isa.families.bulk import GLOBAL_REDUCTIONS
from mcheck.semantics import (
    arrays,
    floats,
    reductions,
    subnormals,
    tensor_footprint,
    tensor_map,
    tensor_transfer,
    tensor_units,
    tile_gather,
)
from mcheck.semantics.chip_behaviour import SM_90
from mcheck.semantics.memory import Memory
from mcheck.semantics.undefined import Misuse

TENSOR, SHARED = 40 * 32 * 4**4, 1 << 16
"""Bytes: of the largest tensor that ``tiles`` draws, rows of 40 slices of 32 bytes, 4 along each further dimension."""


def world() -> tuple[Memory, int, int]:
    """Memory with a tensor of random bytes and shared memory of other ones, and where they are."""
    objects = [
        MemObject(name="t", space="global", elem="b8", elem_size=1, size=TENSOR, init=bytes(TENSOR)),
        MemObject(name="s", space="shared", elem="b8", elem_size=1, size=SHARED, align=1024),
    ]
    layout = lay_out(objects, [Cta(0, 0, 0, 0)])
    memory = Memory(layout)
    rng = np.random.default_rng(5)
    for instance in layout.instances:
        memory.load_object(instance, rng.bytes(instance.object.size))
    t, s = layout.instances
    return memory, t.base, s.base


SWIZZLES = [("none", "16B"), ("32B", "16B"), ("64B", "16B"), ("128B", "16B"), ("128B", "32B"), ("128B", "32B+8B"),
            ("128B", "64B"), ("96B", "16B")]  # fmt: skip


@st.composite
def tiles(draw: st.DrawFn) -> tuple[TensorMapSpec, tuple[int, ...], int]:
    """A tile of any rank, swizzle and layout, its start, and where it goes in shared memory."""
    elemtype = draw(st.sampled_from(["u8", "f16", "u32", "f64"]))
    size = tensor_map.element_size(elemtype)
    interleave = draw(st.sampled_from(["none", "none", "16B", "32B"]))
    rank = draw(st.integers(1 if interleave == "none" else 3, 5))
    mode, atomicity = draw(st.sampled_from(SWIZZLES)) if interleave == "none" else ("32B", "16B")
    span = 64 if mode == "none" else int(mode[:-1])
    step = size if interleave == "none" else int(interleave[:-1])
    inner = 16 * draw(st.integers(1, max(1, span // 16))) // size
    dims = (draw(st.integers(1, 40)), *(draw(st.integers(1, 4)) for _ in range(rank - 1)))
    row = -(-dims[0] * step // 32) * 32
    strides = tuple(itertools.accumulate((row, *dims[1:-1]), int.__mul__))[: rank - 1]
    box = (inner, *(draw(st.integers(1, 4)) for _ in range(rank - 1)))
    spec = TensorMapSpec(
        0, elemtype, rank, dims, strides, tuple(draw(st.integers(1, 3)) for _ in range(rank)), box,
        interleave_layout=interleave, swizzle_mode=mode, swizzle_atomicity=atomicity,
    )  # fmt: skip
    grain = 16 // size if interleave == "none" else 1
    coords = (grain * draw(st.integers(-2, 3)), *(draw(st.integers(-2, 5)) for _ in range(rank - 1)))
    return spec, coords, 128 * draw(st.integers(0, 9))


def at(spec: TensorMapSpec, base: int) -> TensorMapSpec:
    return tensor_map.replace_field(spec, "global_address", base)


@given(tiles())
def test_loads_do_as_their_footprints(case: tuple[TensorMapSpec, tuple[int, ...], int]) -> None:
    spec, coords, shift = case
    memory, base, shared = world()
    spec = at(spec, base)
    expected = bytearray(memory.read(shared, SHARED)[0])
    for run in tensor_footprint.footprint(spec, "tile", coords, shared + shift):
        data = bytes(run.length) if run.address is None else memory.read(run.address, run.length)[0]
        expected[shift + run.offset : shift + run.offset + run.length] = data
    tensor_transfer.load(memory, spec, "tile", coords, shared + shift)
    assert memory.read(shared, SHARED)[0] == bytes(expected)


@pytest.mark.daily(days=3, least=0)
@given(tiles(), st.booleans(), st.lists(st.tuples(*[st.integers(0, 3)] * 5), min_size=1, max_size=3))
def test_one_gather_does_as_the_units(
    case: tuple[TensorMapSpec, tuple[int, ...], int], nan: bool, others: list[tuple[int, ...]]
) -> None:
    """What is kept for one place serves the others; a copy that one gather does not cover is left alone."""
    spec, first, shift = case
    if nan and spec.elemtype != "f16":
        return
    grain = max(1, 16 // tensor_map.step_bytes(spec))
    spec = replace(spec, fill_mode="nan" if nan else "zero")
    for coords in (first, *((other[0] * grain, *other[1 : spec.rank]) for other in others)):
        gathered, base, shared = world()
        unitwise, _, _ = world()
        here = at(spec, base)
        counted = tile_gather.load(gathered, here, coords, shared + shift, (shared + shift) % 1024)
        what = tensor_units.plan(here, "tile", coords, shared + shift)
        if counted is not None:
            tensor_transfer.deposit(unitwise, what, tensor_transfer.gather(unitwise, what))
            assert counted == tensor_footprint.box_bytes(here, "tile")
        assert gathered.read(shared, SHARED) == unitwise.read(shared, SHARED)


def test_a_tile_is_one_gather() -> None:
    memory, base, shared = world()
    spec = TensorMapSpec(base, "f16", 2, (60, 8), (128,), (1, 1), (64, 8), swizzle_mode="128B")
    assert tile_gather.load(memory, spec, (0, 0), shared, shared % 1024) == 1024
    assert tile_gather.load(memory, spec, (0, 9), shared, shared % 1024) is None, "nothing of it is in the tensor"
    far = replace(spec, global_dim=(60, 1 << 20))
    assert tile_gather.load(memory, far, (0, 1 << 19), shared, shared % 1024) is None, "beyond the object"
    with pytest.raises(Misuse, match="in no object"):
        tensor_transfer.load(memory, far, "tile", (0, 1 << 19), shared)
    with pytest.raises(Misuse, match="not aligned"):
        tensor_transfer.load(memory, spec, "tile", (0, 0), shared + 16)


@given(tiles())
@example((
    TensorMapSpec(0, "u8", 5, (22, 4, 4, 4, 4), (704, 2816, 11264, 45056), (1,) * 5, (16, 1, 1, 1, 1),
                  interleave_layout="32B", swizzle_mode="32B"), (0, 0, 0, 0, 3), 0,
))  # fmt: skip
def test_stores_do_as_their_footprints(case: tuple[TensorMapSpec, tuple[int, ...], int]) -> None:
    spec, coords, shift = case
    if spec.swizzle_atomicity == "32B+8B":
        return
    coords = tuple(max(x, 0) for x in coords)
    memory, base, shared = world()
    spec = at(spec, base)
    expected = bytearray(memory.read(base, TENSOR)[0])
    for run in tensor_footprint.footprint(spec, "tile", coords, shared + shift, kind="store"):
        assert run.address is not None
        where = run.address - base
        expected[where : where + run.length] = memory.read(shared + shift + run.offset, run.length)[0]
    tensor_transfer.store(memory, spec, "tile", coords, shared + shift)
    assert memory.read(base, TENSOR)[0] == bytes(expected)


@given(tiles())
def test_a_load_and_its_store_are_the_identity(case: tuple[TensorMapSpec, tuple[int, ...], int]) -> None:
    spec, coords, shift = case
    if spec.swizzle_atomicity == "32B+8B":
        return
    coords = tuple(max(x, 0) for x in coords)
    memory, base, shared = world()
    spec = at(spec, base)
    before = memory.read(base, TENSOR)[0]
    tensor_transfer.load(memory, spec, "tile", coords, shared + shift)
    tensor_transfer.store(memory, spec, "tile", coords, shared + shift)
    assert memory.read(base, TENSOR)[0] == before


def test_what_sm_90_writes_beyond_the_end_of_a_row() -> None:
    """The documents leave out elements outside the tensor; the chip writes the last 16 bytes of a row whole."""
    spec = TensorMapSpec(0, "u8", 2, (20, 2), (32,), (1, 1), (32, 2))
    documented, base, shared = world()
    tensor_transfer.store(documented, at(spec, base), "tile", (0, 0), shared)
    chip, base, shared = world()
    before = chip.read(base, TENSOR)[0]
    tensor_transfer.store(chip, at(spec, base), "tile", (0, 0), shared, how=SM_90)
    image = chip.read(shared, 64)[0]
    assert documented.read(base, 64)[0] == image[:20] + before[20:32] + image[32:52] + before[52:64]
    assert chip.read(base, 64)[0] == image


@pytest.mark.parametrize(("mode", "atomicity"), SWIZZLES)
def test_swizzles_are_their_own_inverse(mode: str, atomicity: str) -> None:
    spec = TensorMapSpec(0, "u8", 1, (16,), (), (1,), (16,), swizzle_mode=mode, swizzle_atomicity=atomicity)
    addresses = np.arange(4096, dtype=np.int64)
    once = tensor_footprint.swizzled(spec, addresses)
    assert (tensor_footprint.swizzled(spec, once) == addresses).all()
    assert sorted(once) == list(range(4096))
    assert [tensor_footprint.swizzle(spec, a) for a in range(4096)] == once.tolist()


# --- im2col ---------------------------------------------------------------------------------------------


def boxes(spec: TensorMapSpec, coords: tuple[int, ...], offsets: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """im2col by listing all bases of an image in order, W fastest, and starting at the given one.

    A row that the start enters off the grid of the low corner goes on from there, so rows and planes are listed by what
    the loops have as their current start.
    """
    highs = [n - 1 + u for n, u in zip(spec.global_dim[1:], spec.pixel_box_upper_corner, strict=False)]
    lows, steps = spec.pixel_box_lower_corner, spec.element_stride[1:]

    def rest(level: int, starts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if level < 0:
            yield ()
            return
        for x in range(starts[level], highs[level] + 1, steps[level]):
            for inner in rest(level - 1, starts):
                yield (*inner, x)
            starts = (*lows[:level], *starts[level:])

    image, starts = coords[-1], coords[1:-1]
    while True:
        for base in rest(len(lows) - 1, tuple(starts)):
            yield (*(x + off for x, off in zip(base, offsets, strict=True)), image)
        starts, image = tuple(lows), image + spec.element_stride[spec.rank - 1]


@st.composite
def images(draw: st.DrawFn) -> tuple[TensorMapSpec, tuple[int, ...], tuple[int, ...]]:
    rank = draw(st.integers(3, 5))
    sizes = [draw(st.integers(2, 6)) for _ in range(rank - 2)]
    lower = [draw(st.integers(-2, 1)) for _ in sizes]
    upper = [max(draw(st.integers(-1, 2)), low + 1 - n) for n, low in zip(sizes, lower, strict=True)]
    spec = TensorMapSpec(
        0, "u8", rank, (32, *sizes, 3), (32,) * (rank - 1), tuple(draw(st.integers(1, 3)) for _ in range(rank)),
        pixel_box_lower_corner=tuple(lower), pixel_box_upper_corner=tuple(upper), channels_per_pixel=16,
        pixels_per_column=draw(st.integers(1, 60)), swizzle_mode="32B",
    )  # fmt: skip
    base = [draw(st.integers(low, n - 1 + up)) for low, up, n in zip(lower, upper, sizes, strict=True)]
    return spec, (0, *base, draw(st.integers(0, 2))), tuple(draw(st.integers(0, 3)) for _ in sizes)


@given(images())
def test_im2col_counts_as_the_walk_and_as_plain_loops(
    case: tuple[TensorMapSpec, tuple[int, ...], tuple[int, ...]],
) -> None:
    spec, coords, offsets = case
    counted = [tuple(p) for p in tensor_footprint.pixels(spec, "im2col", coords, offsets).tolist()]
    assert counted == [row[1:] for row in tensor_footprint._im2col_rows(spec, coords, offsets)]
    assert counted == list(itertools.islice(boxes(spec, coords, offsets), len(counted)))


@given(images(), st.sampled_from(tensor_footprint.WIDE), st.integers(0, 31))
def test_im2col_w_keeps_rows_and_planes(
    case: tuple[TensorMapSpec, tuple[int, ...], tuple[int, ...]], mode: str, offset: int
) -> None:
    """Not verified on hardware: the walk of section 5.5.5 by its three formulas."""
    spec, coords, _ = case
    counted = tensor_footprint.pixels(spec, mode, coords, (0, offset)).tolist()
    assert [tuple(p) for p in counted] == [row[1:] for row in tensor_footprint._wide_rows(spec, mode, coords, offset)]
    assert len(counted) == (128 if mode.endswith("128") else spec.pixels_per_column)
    assert all(tuple(p[1:-1]) == coords[2:-1] for p in counted)
    low, high = tensor_map.bounding_box(spec)[0]
    assert all(low + offset <= p[0] <= high + offset for p in counted)
    assert tensor_footprint.box_bytes(spec, mode, (0, offset)) == 16 * len(counted)


# --- reductions -----------------------------------------------------------------------------------------

PAIRS = sorted({(op, t) for op, types in GLOBAL_REDUCTIONS.items() for t in types})


def samples(type_: str) -> list[int]:
    """Patterns that go wrong most easily, and some others."""
    size = reductions.element_size(type_)
    bits = 8 * size
    found = {0, 1, 2, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, (1 << (bits - 1)) + 1}
    form = floats.FORMATS.get(type_)
    if form is not None:
        for magnitude in (form.infinity, form.infinity + 1, form.infinity - 1, 1 << form.mantissa,
                          (1 << form.mantissa) - 1, form.nan & (form.sign - 1)):  # fmt: skip
            found |= {magnitude, magnitude | form.sign}
    found |= {int.from_bytes(np.random.default_rng(k).bytes(size), "little") for k in range(12)}
    return sorted(found)


@pytest.mark.parametrize(("op", "type_"), PAIRS, ids=[f"{op}.{t}" for op, t in PAIRS])
@pytest.mark.parametrize("flush", [True, False], ids=["ftz", "noftz"])
def test_arrays_reduce_as_scalars_do(op: str, type_: str, flush: bool) -> None:
    size = reductions.element_size(type_)
    pairs = list(itertools.product(samples(type_), repeat=2))
    a, b = (np.frombuffer(b"".join(p[k].to_bytes(size, "little") for p in pairs), np.uint8) for k in (0, 1))
    expected = b"".join(
        reductions.reduce(op, type_, old, new, flush_subnormals=flush).to_bytes(size, "little") for old, new in pairs
    )
    assert arrays.reduce_array(op, type_, a, b, flush=flush).tobytes() == expected


@given(st.lists(st.integers(0, (1 << 32) - 1), min_size=1, max_size=64))
@settings(max_examples=50)
def test_tf32_is_the_nearest_with_ten_bits(patterns: list[int]) -> None:
    found = arrays.tf32(np.array(patterns, "<u4")).tolist()
    for bits, rounded in zip(patterns, found, strict=True):
        if bits & 0x7FFFFFFF > 0x7F800000:
            assert rounded == 0x7FFFE000
            continue
        below = bits & ~0x1FFF
        distances = {below: bits - below, below + 0x2000: below + 0x2000 - bits}
        best = min(distances.values())
        assert rounded in [c for c, d in distances.items() if d == best]
        if list(distances.values()).count(best) == 2:
            assert rounded >> 13 & 1 == 0


# --- nothing is written before an error -----------------------------------------------------------------

GOOD = TensorMapSpec(0, "f16", 2, (64, 32), (128,), (1, 1), (32, 8))
WRONG = [
    ("UB401", {}, (4, 0), 0),
    ("UB402", {}, (0, -1), 0),
    ("UB102", {}, (0, 0), 64),
    ("UB103", {"global_dim": (64, 4096)}, (0, 4000), 0),
    ("UB103", {}, (0, 0), SHARED - 128),
    ("UB404", {"box_dim": (32, 300)}, (0, 0), 0),
    ("UB404", {"global_stride": (120,)}, (0, 0), 0),
]


@pytest.mark.parametrize(("code", "fields", "coords", "shift"), WRONG)
def test_nothing_is_written_before_an_error(
    code: str, fields: dict[str, object], coords: tuple[int, int], shift: int
) -> None:
    from dataclasses import replace

    memory, base, shared = world()
    spec = replace(at(GOOD, base), **fields)  # type: ignore[arg-type]
    before = memory.read(base, TENSOR)[0], memory.read(shared, SHARED)[0]
    with pytest.raises(Misuse) as caught:
        tensor_transfer.store(memory, spec, "tile", coords, shared + shift)
    assert caught.value.code == code
    assert (memory.read(base, TENSOR)[0], memory.read(shared, SHARED)[0]) == before


def test_open_points_are_told() -> None:
    plain = TensorMapSpec(0, "u8", 2, (64, 32), (64,), (1, 1), (64, 8))
    assert tensor_footprint.open_points(plain, "tile", (0, 0)) == ()
    narrow = TensorMapSpec(0, "u8", 2, (64, 32), (64,), (1, 1), (32, 8), swizzle_mode="64B")
    (point,) = tensor_footprint.open_points(narrow, "tile", (0, 0))
    assert "64 bytes of shared memory" in point
    assert any("full box" in p for p in tensor_footprint.open_points(plain, "tile", (32, 0)))


def test_addresses_beyond_every_object_do_not_wrap() -> None:
    """Row 2 ** 25 of rows of 2 ** 39 bytes is 2 ** 64 bytes away, not at the start of the tensor."""
    memory, base, shared = world()
    spec = TensorMapSpec(base, "u8", 2, (64, 1 << 32), (1 << 39,), (1, 1), (16, 1))
    tensor_transfer.load(memory, spec, "tile", (0, 0), shared)
    for row in (1 << 24, 1 << 25, (1 << 25) + 1):
        with pytest.raises(Misuse, match="is in no object") as caught:
            tensor_transfer.load(memory, spec, "tile", (0, row), shared)
        assert caught.value.code == "UB103"


EDGES = [0, 1, 0x7FFFFF, 0x800000, 0x800001, 0x0D000000, 0x0D800000, 0x0E000000, 0x3F800000, 0x7F7FFFFF, 0x7F800000]


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("told", [False, True])
def test_f32_sums_at_the_edges(alone: bool, told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of zeros, subnormal numbers, what is just large enough beside them, and infinities, with both signs; whether the
    processor can be told to flush or not.
    """
    if not told:
        monkeypatch.setattr(subnormals, "_processor", lambda: None)
    bits = [bit | sign for bit in EDGES for sign in (0, 1 << 31)]
    pairs = [(a, b) for a in bits for b in bits]
    groups = [[pair] for pair in pairs] if alone else [pairs]
    for group in groups:
        old, new = (np.array(column, "<u4").view(np.uint8) for column in zip(*group, strict=True))
        for flush in (True, False):
            expected = [reductions.reduce("add", "f32", a, b, flush_subnormals=flush) for a, b in group]
            assert arrays.reduce_array("add", "f32", old, new, flush=flush).view("<u4").tolist() == expected


def test_only_what_stands_inside_is_flushed() -> None:
    small = np.full(64, 1e-40, np.float32)
    with contextlib.suppress(ZeroDivisionError), subnormals.flushing() as told:
        assert (small + small).any() != told
        raise ZeroDivisionError
    assert (small + small).all()


@given(
    st.lists(st.tuples(st.sampled_from(samples("f32")), st.sampled_from(samples("f32"))), max_size=3),
    st.integers(0, 70),
    st.integers(0, 70),
    st.integers(0, 3),
)
def test_f32_sums_in_blocks(odd: list[tuple[int, int]], before: int, after: int, shift: int) -> None:
    """Numbers that need a second look, anywhere in long arrays of plain ones, at any address."""
    plain = (0x3F800000, 0xC0490FDB)
    group = [plain] * before + odd + [plain] * after
    spaced = (
        np.frombuffer(bytes(shift) + np.array(c, "<u4").tobytes(), np.uint8)[shift:] for c in zip(*group, strict=True)
    )
    old, new = spaced if group else (np.zeros(0, np.uint8), np.zeros(0, np.uint8))
    expected = [reductions.reduce("add", "f32", a, b) for a, b in group]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK", 16)
        assert arrays.reduce_array("add", "f32", old, new).view("<u4").tolist() == expected
