"""Tensor maps: element types, the limits of their encoding, and ``tensormap.replace`` field by field.

PTX ISA 9.0 section 5.5 (tensors), 9.2 sections 9.7.9.25.5.1 (restrictions) and 9.7.9.26 (replace), and the driver's
cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col. Not modelled, and so ``Unsupported``: interleaved layouts of im2col
maps and the element types below a byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import prod
from types import MappingProxyType
from typing import Final

from mcheck.base.errors import Unsupported
from mcheck.base.records import replace
from mcheck.ir.memory import TensorMapSpec
from mcheck.semantics.undefined import Misuse

RESTRICTIONS = "PTX ISA 9.2 section 9.7.9.25.5.1"
TENSORS = "PTX ISA 9.0 section 5.5"
REPLACE = "PTX ISA 9.2 section 9.7.9.26"

# fmt: off
ELEMENT_TYPES: Final = (
    "u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32.ftz", "f64", "bf16", "tf32", "tf32.ftz",
    "b4x16", "b4x16_p64", "b6x16_p32", "b6p2x16",
)
# fmt: on
"""In the order of the codes of tensormap.replace; the last two share code 15."""

INTERLEAVES: Final = ("none", "16B", "32B")
SWIZZLES: Final = ("none", "32B", "64B", "128B", "96B")
ATOMICITIES: Final = ("16B", "32B", "32B+8B", "64B")
FILLS: Final = ("zero", "nan")

_SIZES: Final = MappingProxyType(
    {"u8": 1, "u16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "f16": 2, "f32": 4, "f64": 8, "bf16": 2, "tf32": 4}
)
_FLOATS = frozenset({"f16", "f32", "f64", "bf16", "tf32"})
_CORNERS: Final = MappingProxyType({3: (-32768, 32767), 4: (-128, 127), 5: (-16, 15)})


MAX_BOX: Final = 1 << 18
"""Bytes; the driver takes 228 KiB and refuses 256 KiB."""


def base_type(elemtype: str) -> str:
    """The element type without ``.ftz``."""
    return elemtype.removesuffix(".ftz")


def element_size(elemtype: str) -> int:
    """Bytes of one element; raises ``Unsupported`` for the types that pack sixteen elements of 4 or 6 bits."""
    size = _SIZES.get(base_type(elemtype))
    if size is None:
        raise Unsupported(f"tensor maps with elements of type {elemtype} are not modelled", section=f"{TENSORS}.1.1")
    return size


def is_im2col(spec: TensorMapSpec) -> bool:
    """Is it an im2col map? Tiled maps have a box, im2col maps have corners and counts."""
    return spec.pixels_per_column is not None


def swizzle_span(spec: TensorMapSpec) -> int:
    """Bytes after which the swizzle pattern repeats within a row, 0 without swizzle."""
    return 0 if spec.swizzle_mode == "none" else int(spec.swizzle_mode.removesuffix("B"))


def slice_bytes(spec: TensorMapSpec) -> int:
    """Bytes of a slice of channels in an interleaved layout (5.5.6), 0 in a plain one."""
    return 0 if spec.interleave_layout == "none" else int(spec.interleave_layout.removesuffix("B"))


def step_bytes(spec: TensorMapSpec) -> int:
    """Bytes of one step along dimension 0: an element, or in an interleaved layout a whole slice of channels.

    NC/8HWC8 has the pixels of a row, each of 16 bytes, one after the other; so an sm_90 chip counts them.
    """
    return slice_bytes(spec) or element_size(spec.elemtype)


def counts(spec: TensorMapSpec) -> tuple[int, ...]:
    """Elements that a tile has along each dimension: every element_stride-th of the box (5.5.3.2).

    In an interleaved layout dimension 0 counts slices of channels, and the last dimension but one, which goes from
    slice to slice (N C/8 H W C8), always one of them, whatever the box says: so does an sm_90 chip. The documents do
    not tell.
    """
    found = [-(-box // step) for box, step in zip(spec.box_dim[: spec.rank], spec.element_stride, strict=False)]
    if slice_bytes(spec):
        found[spec.rank - 2] = 1
    return tuple(found)


def inner_bytes(spec: TensorMapSpec) -> int:
    """Bytes of one row of the box, or of the channels of one pixel. The stride of dimension 0 counts if interleaved."""
    if slice_bytes(spec) and not is_im2col(spec):
        return counts(spec)[0] * slice_bytes(spec)
    elements = (spec.channels_per_pixel or 0) if is_im2col(spec) else spec.box_dim[0]
    return elements * element_size(spec.elemtype)


def row_pitch(spec: TensorMapSpec) -> int:
    """Bytes from one row of the image in shared memory to the next, before swizzling.

    A row narrower than the swizzle span still takes the whole span; the documents do not say so, an sm_90 chip does it.
    """
    if slice_bytes(spec):
        return inner_bytes(spec)
    return max(inner_bytes(spec), swizzle_span(spec))


def reduction_type(elemtype: str, reduce: str | None) -> str:
    """The type by which a reduction takes elements of a map: bitwise operations have untyped words of that width."""
    kind = {"f32.ftz": "f32", "tf32": "f32", "tf32.ftz": "f32"}.get(elemtype, elemtype)
    if reduce in ("and", "or", "xor") and kind[0] in "us":
        return "b" + kind[1:]
    return kind


def fill_pattern(spec: TensorMapSpec) -> bytes:
    """What out-of-bounds elements of a load become (5.5.3.3): zeros, or NaN.

    The section does not give the bits of that NaN. Hopper writes 0x7FF7 into every 16 bits, whatever the type.
    """
    return b"\xf7\x7f" if spec.fill_mode == "nan" else b"\0"


# --- limits of the encoding ---------------------------------------------------------------------------


@lru_cache(maxsize=256)
def violations(spec: TensorMapSpec) -> tuple[str, ...]:
    """What keeps ``spec`` from being a tensor map, one sentence per rule that is broken.

    Raises ``Unsupported`` for what is not modelled. Lists may be longer than the rank; the rest is ignored.
    """
    if spec.interleave_layout != "none" and is_im2col(spec):
        raise Unsupported("interleaved im2col maps are not modelled", section=f"{TENSORS}.6")
    size = element_size(spec.elemtype)
    short = tuple(_short_lists(spec))
    if short:
        return short
    kind = _im2col_limits(spec) if is_im2col(spec) else _tile_limits(spec)
    return (*_common_limits(spec), *kind, *_swizzle_limits(spec, size))


def check_tensor_map(spec: TensorMapSpec) -> None:
    """Raises ``Misuse`` (UB404) for the first limit that is broken."""
    for sentence in violations(spec):
        raise Misuse("UB404", f"the tensor map cannot be encoded: {sentence}", TENSORS)


def _short_lists(spec: TensorMapSpec) -> Iterator[str]:
    low = 3 if is_im2col(spec) or slice_bytes(spec) else 1
    if not low <= spec.rank <= 5:
        yield f"rank is {spec.rank}; it must be {low} to 5"
        return
    lengths = {"global_dim": spec.rank, "global_stride": spec.rank - 1, "element_stride": spec.rank}
    if is_im2col(spec):
        lengths |= {"pixel_box_lower_corner": spec.rank - 2, "pixel_box_upper_corner": spec.rank - 2}
    else:
        lengths["box_dim"] = spec.rank
    for name, length in lengths.items():
        found = len(getattr(spec, name))
        if found < length:
            yield f"{name} has {found} entries; rank {spec.rank} takes {length}"


def _common_limits(spec: TensorMapSpec) -> Iterator[str]:
    grain = 32 if slice_bytes(spec) == 32 else 16
    if spec.global_address % grain:
        yield f"global_address {spec.global_address:#x} is not a multiple of {grain}"
    for i, dim in enumerate(spec.global_dim[: spec.rank]):
        if not 1 <= dim <= 1 << 32:
            yield f"global_dim[{i}] is {dim}; it must be 1 to 2^32"
    for i, stride in enumerate(spec.global_stride[: spec.rank - 1]):
        if stride % grain or not 0 <= stride < 1 << 40:
            yield f"global_stride[{i}] is {stride}; it must be a multiple of {grain} below 2^40"
    # That of dimension 0 counts in interleaved layouts only, but has to be in range everywhere.
    for i, stride in enumerate(spec.element_stride[: spec.rank]):
        if not 1 <= stride <= 8:
            yield f"element_stride[{i}] is {stride}; it must be 1 to 8"
    if spec.fill_mode == "nan" and base_type(spec.elemtype) not in _FLOATS:
        yield f"fill_mode nan is for floating-point elements, not {spec.elemtype}"


def _tile_limits(spec: TensorMapSpec) -> Iterator[str]:
    for i, dim in enumerate(spec.box_dim[: spec.rank]):
        if not 1 <= dim <= 256:
            yield f"box_dim[{i}] is {dim}; it must be 1 to 256"
    row = spec.box_dim[0] * element_size(spec.elemtype)
    if row % 16:
        yield f"a row of the box has {row} bytes; it must be a multiple of 16"
    if all(step > 0 for step in spec.element_stride[: spec.rank]):
        yield from _total(prod(counts(spec)[1:]), spec)


def _total(rows: int, spec: TensorMapSpec) -> Iterator[str]:
    """The documents name no limit of the whole box; the driver refuses what no CTA's shared memory holds."""
    total = rows * inner_bytes(spec)
    if total >= MAX_BOX:
        yield f"the box has {total} bytes; it must have less than {MAX_BOX}"


def _im2col_limits(spec: TensorMapSpec) -> Iterator[str]:
    for i, dim in enumerate(spec.global_dim[1 : spec.rank - 1], 1):
        if 1 << 31 < dim <= 1 << 32:
            yield f"global_dim[{i}] is {dim}; of an im2col map it must be up to 2^31"
    low, high = _CORNERS[spec.rank]
    corners = (spec.pixel_box_lower_corner, spec.pixel_box_upper_corner)
    for name, corner in zip(("lower", "upper"), corners, strict=True):
        for i, value in enumerate(corner[: spec.rank - 2]):
            if not low <= value <= high:
                yield f"pixel_box_{name}_corner[{i}] is {value}; at rank {spec.rank} it must be {low} to {high}"
    for i, (first, last) in enumerate(bounding_box(spec)):
        if first > last:
            yield f"the pixel box is empty in dimension {i + 1}"
    if not 1 <= (spec.channels_per_pixel or 0) <= 256:
        yield f"channels_per_pixel is {spec.channels_per_pixel}; it must be 1 to 256"
    if not 1 <= (spec.pixels_per_column or 0) <= 1024:
        yield f"pixels_per_column is {spec.pixels_per_column}; it must be 1 to 1024"
    if inner_bytes(spec) % 16:
        yield f"the channels of a pixel have {inner_bytes(spec)} bytes; they must be a multiple of 16"
    yield from _total(spec.pixels_per_column or 0, spec)


def _swizzle_limits(spec: TensorMapSpec, size: int) -> Iterator[str]:
    span = swizzle_span(spec)
    if slice_bytes(spec) == 32 and span != 32:
        yield f"swizzle_mode is {spec.swizzle_mode}; interleave_layout 32B takes 32B"
    if span and not slice_bytes(spec) and inner_bytes(spec) > span:
        yield f"{inner_bytes(spec)} bytes in a row; swizzle_mode {spec.swizzle_mode} takes up to {span}"
    if spec.swizzle_atomicity != "16B" and span != 128:
        yield f"swizzle_atomicity {spec.swizzle_atomicity} goes with swizzle_mode 128B, not {spec.swizzle_mode}"
    if spec.swizzle_atomicity == "32B+8B" and size > 8:
        yield "swizzle_atomicity 32B+8B takes elements up to 8 bytes"


def bounding_box(spec: TensorMapSpec) -> tuple[tuple[int, int], ...]:
    """First and last coordinate of the filter base in W, H, D (5.5.4.1): corner i belongs to dimension i + 1.

    The driver's reference lists the corners D first; Hopper takes them W first.
    """
    spatial = range(spec.rank - 2)
    return tuple(
        (spec.pixel_box_lower_corner[i], spec.global_dim[i + 1] - 1 + spec.pixel_box_upper_corner[i]) for i in spatial
    )


# --- tensormap.replace --------------------------------------------------------------------------------


def replace_field(spec: TensorMapSpec, field_name: str, value: int, ordinal: int | None = None) -> TensorMapSpec:
    """``tensormap.replace.tile.field``: the map with one field changed, by the codes of the section (9.2, 9.7.9.26).

    The rank field holds the rank less one. A map has room for five dimensions, so an ordinal may lie beyond the current
    rank; entries that nobody has set are then 1, strides 0. The section leaves open how a 32-bit field gives a size of
    2^32; 0 is a violation here. The result need not be a legal map; ``check_tensor_map`` tells when it is used.
    """
    if field_name in _LISTS:
        length, padding = _LISTS[field_name]
        if field_name == "box_dim" and is_im2col(spec):
            raise Misuse("UB404", "box_dim of an im2col map is replaced", REPLACE)
        if ordinal is None or not 0 <= ordinal < length:
            raise Misuse("UB109", f"tensormap.replace of {field_name} with ordinal {ordinal}", REPLACE)
        entries = list(getattr(spec, field_name))
        entries += [padding] * (ordinal + 1 - len(entries))
        entries[ordinal] = value
        return _with(spec, field_name, tuple(entries))
    if field_name == "elemtype" and value == 15:
        # The code has two readings: padded in shared memory for loads, or two bits packed away for stores.
        return _with(spec, field_name, "b6x16_p32")
    if field_name in _CODES:
        words = _CODES[field_name]
        if not 0 <= value < len(words):
            raise Misuse("UB109", f"tensormap.replace of {field_name} with code {value}", REPLACE)
        return _with(spec, field_name, words[value])
    return _SCALARS[field_name](spec, value)


_LISTS: Final = MappingProxyType(
    {"box_dim": (5, 1), "global_dim": (5, 1), "global_stride": (4, 0), "element_stride": (5, 1)}
)
_CODES: Final = MappingProxyType(
    {
        "elemtype": ELEMENT_TYPES[:15],
        "interleave_layout": INTERLEAVES,
        "swizzle_mode": SWIZZLES,
        "swizzle_atomicity": ATOMICITIES,
        "fill_mode": FILLS,
    }
)


def _replace_rank(spec: TensorMapSpec, value: int) -> TensorMapSpec:
    if not 0 <= value <= 4:
        raise Misuse("UB109", f"tensormap.replace of rank with {value}; it takes the rank less one, 0 to 4", REPLACE)
    padded = {
        name: getattr(spec, name) + (padding,) * (value + 1 - (name == "global_stride") - len(getattr(spec, name)))
        for name, (_, padding) in _LISTS.items()
        if name != "box_dim" or not is_im2col(spec)
    }
    return replace(spec, rank=value + 1, **padded)


_SCALARS: Final[MappingProxyType[str, Callable[[TensorMapSpec, int], TensorMapSpec]]] = MappingProxyType(
    {
        "rank": _replace_rank,
        "global_address": lambda spec, value: replace(spec, global_address=value),
    }
)


def _with(spec: TensorMapSpec, field_name: str, value: object) -> TensorMapSpec:
    return replace(spec, **{field_name: value})  # type: ignore[arg-type]
