"""Byte footprints of tensor copies: which byte of shared memory belongs to which byte of the tensor.

PTX ISA 9.0 sections 5.5 and 9.7.9.27.1.2, and where these are silent what an sm_90 chip does: the pitch of rows
narrower than the swizzle span, the order of the im2col corners, complete-tx of the full box, slices as the elements of
interleaved layouts, and the traps of UB401 and UB402. ``open_points`` lists what a copy relies on that no document
says. Not modelled, and so ``Unsupported``: elements below a byte, interleaved im2col maps, halos of im2col::w and
im2col::w::128. Values are not converted here: tf32 maps round what they load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from mcheck.base.errors import Unsupported
from mcheck.ir.memory import TensorMapSpec
from mcheck.semantics import tensor_map
from mcheck.semantics.reductions import TENSOR_REDUCTIONS
from mcheck.semantics.undefined import Misuse

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

SECTION = "PTX ISA 9.0 section 9.7.9.27.1.2"
MAX_SHARED = 256 * 1024
"""More than the shared memory of any CTA so far (227 KiB); boxes above it are not walked."""
ALIGNMENT = 128
_OFFSET_BITS = {3: 16, 4: 8, 5: 5}


class TensorRun(NamedTuple):
    """``length`` bytes at ``offset`` from the shared address; ``address`` is theirs in global memory (``None``: fill).

    An offset is negative where a swizzle moves bytes below an address that is not aligned to its pattern.
    """

    offset: int
    address: int | None
    length: int


def footprint(
    spec: TensorMapSpec,
    mode: str,
    coords: Sequence[int],
    shared: int,
    *,
    kind: str = "load",
    info: Sequence[int] = (),
    reduce: str | None = None,
) -> tuple[TensorRun, ...]:
    """The bytes of one tensor copy from (``kind`` load) or to (store) the tensor of ``spec``.

    ``shared`` is the absolute shared-memory address, on which swizzles depend; ``coords`` and the im2col offsets
    ``info`` are those of the instruction, dimension 0 first. Elements outside the tensor are filled by a load and
    skipped by a store or a reduction. Raises ``Misuse`` and ``Unsupported`` as ``check_copy`` does.
    """
    check_copy(spec, kind, len(coords) if mode not in FOUR_ROWS else 2, mode, shared, coords, info, reduce)
    inner = tensor_map.inner_bytes(spec)
    pitch = tensor_map.row_pitch(spec)
    runs: list[TensorRun] = []
    for index, row in enumerate(_rows(spec, mode, coords, info)):
        for start, address, length in _clipped(spec, row, inner):
            if address is not None or kind == "load":
                for piece in _swizzled(spec, shared, index * pitch + start, address, length):
                    _append(runs, piece)
    return tuple(runs)


def box_bytes(spec: TensorMapSpec, mode: str, info: Sequence[int] = ()) -> int:
    """The bytes of the whole box: the count of complete-tx, also where (part of) the box is outside the tensor.

    The section speaks of the data copied; the full box is what an sm_90 chip counts. The gaps between rows that are
    narrower than the swizzle span do not count, the halo of im2col::w and im2col::w::128 does (``info`` has its size).
    """
    tensor_map.check_tensor_map(spec)
    if mode in FOUR_ROWS:
        rows = 4
    elif tensor_map.is_im2col(spec):
        rows = pixel_count(spec, mode) + (halo_count(mode, info[0]) if mode in WIDE and info else 0)
    else:
        rows = 1
        for count in tensor_map.counts(spec)[1:]:
            rows *= count
    return rows * tensor_map.inner_bytes(spec)


def image_bytes(spec: TensorMapSpec, mode: str, shared: int, info: Sequence[int] = ()) -> int:
    """From the shared address to the end of the image of a box, the gaps between rows included."""
    inner = tensor_map.inner_bytes(spec)
    last = (box_bytes(spec, mode, info) // inner - 1) * tensor_map.row_pitch(spec)
    return max(piece.offset + piece.length for piece in _swizzled(spec, shared, last, None, inner))


def extent(spec: TensorMapSpec) -> tuple[int, int]:
    """The lowest address of a tensor, and the bytes from there to its last element."""
    rows = sum((n - 1) * t for n, t in zip(spec.global_dim[1:], spec.global_stride, strict=False))
    return spec.global_address, rows + spec.global_dim[0] * tensor_map.step_bytes(spec)


def rows_inside(
    spec: TensorMapSpec, mode: str, coords: Sequence[int], info: Sequence[int] = ()
) -> Iterator[tuple[int, int]]:
    """(address, length) of what each row of a box has inside the tensor."""
    inner = tensor_map.inner_bytes(spec)
    for row in _rows(spec, mode, coords, info):
        for _, address, length in _clipped(spec, row, inner):
            if address is not None:
                yield address, length


def pixel_count(spec: TensorMapSpec, mode: str) -> int:
    """The pixels of an im2col copy without its halo; im2col::w::128 has 128 whatever the map says (5.5.5.1)."""
    return 128 if mode == "im2col::w::128" else spec.pixels_per_column or 0


def halo_count(mode: str, halo: int) -> int:
    """The halo pixels: ``halo`` of them once, or in im2col::w::128 for each 32 pixels (5.5.5.3)."""
    return 4 * halo if mode == "im2col::w::128" else halo


def open_points(
    spec: TensorMapSpec, mode: str, coords: Sequence[int], *, kind: str = "load", reduce: str | None = None
) -> tuple[str, ...]:
    """What this copy relies on that the documents leave open, one sentence each, with where our answer comes from."""
    found = []
    span, inner = tensor_map.swizzle_span(spec), tensor_map.inner_bytes(spec)
    if span and inner < span and not tensor_map.slice_bytes(spec):
        found.append(f"rows of {inner} bytes take {span} bytes of shared memory each (seen on sm_90)")
    if tensor_map.is_im2col(spec):
        found.append("the corners of the pixel box are given W first (seen on sm_90)")
    if mode in WIDE:
        found.append("the walk of im2col::w modes follows the text alone (not verified on hardware)")
    if tensor_map.slice_bytes(spec):
        found.append("dimension 0 counts slices of an interleaved layout (seen on sm_90)")
        if span and tensor_map.slice_bytes(spec) == 16:
            found.append("a swizzled interleaved image is dense (seen on sm_90)")
    if spec.swizzle_atomicity != "16B" or span == 96 or mode in FOUR_ROWS:
        found.append("swizzles, gather4 and scatter4 of sm_100 follow the tables of the ISA (not verified on hardware)")
    outside = _leaves(spec, mode, coords)
    if outside and kind == "load":
        found.append("complete-tx counts the full box, what is outside the tensor included (seen on sm_90)")
        if spec.fill_mode == "nan":
            found.append("out-of-bounds NaN has the bits 0x7FF7 in every 16 (seen on sm_90)")
    if kind == "store" and spec.global_dim[0] * tensor_map.step_bytes(spec) % 16:
        found.append("elements outside are not written; sm_90 writes the 16 bytes in which the tensor ends whole")
    if kind == "load" and spec.elemtype.startswith("tf32"):
        found.append("tf32 rounds to nearest even on the way in, NaN becomes 0x7FFFE000 (seen on sm_90)")
    if spec.elemtype.endswith(".ftz") and reduce is None:
        found.append("a copy of .ftz elements does not flush subnormal numbers (seen on sm_90)")
    if reduce in ("min", "max") and spec.elemtype in ("f16", "bf16"):
        found.append("min and max give way to a number for NaN, -0 is below +0 (seen on sm_90)")
    if mode == "tile::scatter4" and len(set(coords[1:])) < 4:
        found.append("the order of two writes to the same row is open; here the later row wins")
    return tuple(found)


def _leaves(spec: TensorMapSpec, mode: str, coords: Sequence[int]) -> bool:
    """May the copy leave the tensor? Exact for tiles; im2col boxes are taken to."""
    if mode != "tile":
        return True
    return any(
        not (x >= 0 and x + box <= size) for x, box, size in zip(coords, spec.box_dim, spec.global_dim, strict=False)
    )


# --- conditions ---------------------------------------------------------------------------------------

WIDE = ("im2col::w", "im2col::w::128")
FOUR_ROWS = ("tile::gather4", "tile::scatter4")
_MODES = {
    "load": ("tile", "tile::gather4", "im2col", "im2col::w", "im2col::w::128"),
    "store": ("tile", "tile::scatter4", "im2col_no_offs"),
}


def check_copy(
    spec: TensorMapSpec,
    kind: str,
    dim: int,
    mode: str,
    shared: int,
    coords: Sequence[int],
    im2col_info: Sequence[int] = (),
    reduce: str | None = None,
) -> None:
    """The run-time conditions of a tensor copy; raises ``Misuse``, or ``Unsupported`` for what is not modelled.

    ``dim`` is that of the instruction, 2 for gather4 and scatter4. The shared address is aligned to 128 bytes, as the
    programming guide asks: 5.5.3.1 speaks of 16, but an sm_90 chip traps at anything less than 128, swizzled or not.
    """
    if mode not in _MODES[kind]:
        raise Misuse("UB404", f"a {kind} has no mode {mode}", SECTION)
    tensor_map.check_tensor_map(spec)
    _check_fit(spec, dim, mode, coords, reduce)
    if box_bytes(spec, mode, im2col_info) > MAX_SHARED:
        raise Misuse(
            "UB404", f"a box of {box_bytes(spec, mode, im2col_info)} bytes; no CTA has as much shared memory", SECTION
        )
    alignment = ALIGNMENT
    if shared % alignment:
        raise Misuse("UB102", f"the shared address {shared:#x} is not aligned to {alignment} bytes", tensor_map.TENSORS)
    if kind == "store" and spec.swizzle_atomicity == "32B+8B":
        raise Misuse("UB404", "swizzle_atomicity 32B+8B is for loads only", tensor_map.RESTRICTIONS)
    start = coords[0] * tensor_map.step_bytes(spec)
    if start % 16:
        raise Misuse("UB401", f"coordinate {coords[0]} of dimension 0 is {start} bytes, not a multiple of 16", SECTION)
    negative = next((i for i, x in enumerate(coords) if x < 0), None)
    if kind == "store" and negative is not None:
        raise Misuse(
            "UB402", f"a store starts at coordinate {coords[negative]} of operand {negative}", tensor_map.RESTRICTIONS
        )
    if mode in WIDE:
        _check_wide(spec, mode, coords, im2col_info)
    elif mode.startswith("im2col"):
        _check_im2col(spec, mode, coords, im2col_info)


def _check_fit(spec: TensorMapSpec, dim: int, mode: str, coords: Sequence[int], reduce: str | None) -> None:
    if dim != spec.rank:
        raise Misuse("UB404", f"the instruction has {dim} dimensions, its tensor map {spec.rank}", SECTION)
    if mode.startswith("im2col") != tensor_map.is_im2col(spec):
        layout = "an im2col" if tensor_map.is_im2col(spec) else "a tiled"
        raise Misuse("UB404", f"mode {mode} with {layout} tensor map", SECTION)
    wanted = 5 if mode in FOUR_ROWS else spec.rank
    if len(coords) != wanted:
        raise Misuse("UB404", f"{len(coords)} coordinates; mode {mode} of rank {spec.rank} takes {wanted}", SECTION)
    if tensor_map.slice_bytes(spec) and mode != "tile":
        raise Misuse("UB404", f"mode {mode} with an interleaved tensor map", tensor_map.TENSORS)
    if mode in FOUR_ROWS and spec.box_dim[1] != 1:
        raise Misuse("UB404", f"mode {mode} with box_dim[1] = {spec.box_dim[1]}; it must be 1", tensor_map.TENSORS)
    if reduce is not None and not _can_reduce(reduce, tensor_map.base_type(spec.elemtype)):
        raise Misuse("UB404", f"a reduction .{reduce} of elements of type {spec.elemtype}", "PTX ISA 9.2 9.7.9.25.5.3")


def _can_reduce(op: str, elemtype: str) -> bool:
    """Bitwise operations are listed by .b types, which no map has: any integer element of that width will do."""
    untyped = {"u32": "b32", "s32": "b32", "u64": "b64", "s64": "b64"}.get(elemtype, "")
    return (untyped if op in ("and", "or", "xor") else elemtype) in TENSOR_REDUCTIONS.get(op, ())


def _check_im2col(spec: TensorMapSpec, mode: str, coords: Sequence[int], offsets: Sequence[int]) -> None:
    if mode == "im2col_no_offs":
        if min(spec.pixel_box_lower_corner) < 0 or max(spec.pixel_box_upper_corner) > 0:
            raise Misuse("UB404", "a store with a pixel box beyond the tensor", tensor_map.RESTRICTIONS)
    elif len(offsets) != spec.rank - 2:
        raise Misuse("UB404", f"{len(offsets)} im2col offsets; rank {spec.rank} takes {spec.rank - 2}", SECTION)
    bits = _OFFSET_BITS[spec.rank]
    for i, offset in enumerate(offsets):
        if not 0 <= offset < 1 << bits:
            raise Misuse("UB405", f"im2col offset {offset} of dimension {i + 1} does not fit {bits} bits", SECTION)
    for i, (low, high) in enumerate(tensor_map.bounding_box(spec), 1):
        if not low <= coords[i] <= high:
            raise Misuse(
                "UB405", f"coordinate {coords[i]} of dimension {i} is outside the pixel box {low}..{high}", SECTION
            )


_HALOS = {"im2col::w": 512, "im2col::w::128": 32}


def _check_wide(spec: TensorMapSpec, mode: str, coords: Sequence[int], info: Sequence[int]) -> None:
    """im2col::w and ::w::128 (5.5.5): a swizzle is required, halo and offset are limited, the start is not right of the

    box. How the halo lies in shared memory no document says, so a copy with one is ``Unsupported``.
    """
    if len(info) != 2:
        raise Misuse("UB404", f"{len(info)} im2col operands; mode {mode} takes a halo and an offset", SECTION)
    if spec.swizzle_mode == "none" or spec.swizzle_atomicity == "32B+8B":
        raise Misuse("UB404", f"mode {mode} with swizzle_mode {spec.swizzle_mode}", f"{tensor_map.TENSORS}.5")
    if spec.swizzle_mode == "96B" and mode == "im2col::w::128":
        raise Misuse("UB404", f"mode {mode} with swizzle_mode 96B", tensor_map.RESTRICTIONS)
    halo, offset = info
    if not 0 <= halo < _HALOS[mode]:
        raise Misuse("UB405", f"im2col halo {halo} is not in 0..{_HALOS[mode] - 1}", SECTION)
    if not 0 <= offset < 32:
        raise Misuse("UB405", f"im2col offset {offset} is not in 0..31", SECTION)
    high = tensor_map.bounding_box(spec)[0][1]
    if coords[1] > high:
        raise Misuse(
            "UB405", f"coordinate {coords[1]} of dimension 1 is right of the pixel box, which ends at {high}", SECTION
        )
    if halo:
        raise Unsupported(f"the halo of mode {mode}: its place is not documented", section=f"{tensor_map.TENSORS}.5.3")


# --- rows -----------------------------------------------------------------------------------------------
#
# A row is a coordinate of the tensor, dimension 0 first, from which the elements of one row of the box (or the channels
# of one pixel) follow along dimension 0. Its element stride counts in interleaved layouts only.

Row = tuple[int, ...]


def _rows(spec: TensorMapSpec, mode: str, coords: Sequence[int], offsets: Sequence[int]) -> Iterator[Row]:
    if mode in FOUR_ROWS:
        return ((coords[0], row) for row in coords[1:])
    if mode in WIDE:
        return _wide_rows(spec, mode, coords, offsets[1])
    if mode.startswith("im2col"):
        return _im2col_rows(spec, coords, tuple(offsets) or (0,) * (spec.rank - 2))
    return _tile_rows(spec, coords)


def _tile_rows(spec: TensorMapSpec, coords: Sequence[int]) -> Iterator[Row]:
    """Along dimension i the elements coord + k * stride inside the box, dimension 1 fastest (5.5.3.2)."""
    counts = tensor_map.counts(spec)
    outer = [[coords[i] + k * spec.element_stride[i] for k in range(counts[i])] for i in range(spec.rank - 1, 0, -1)]
    for xs in product(*outer):
        yield (coords[0], *reversed(xs))


def _im2col_rows(spec: TensorMapSpec, coords: Sequence[int], offsets: Sequence[int]) -> Iterator[Row]:
    """The walk of the filter base through the pixel box (5.5.4.2): W first, then H, D and the images.

    The offsets of the instruction are added to the base when a pixel is addressed, not to the walk.
    """
    box = tensor_map.bounding_box(spec)
    at = list(coords[1:])
    for _ in range(spec.pixels_per_column or 0):
        yield (coords[0], *(x + off for x, off in zip(at, offsets, strict=False)), at[-1])
        for i, (low, high) in enumerate(box):
            at[i] += spec.element_stride[i + 1]
            if at[i] <= high:
                break
            at[i] = low
        else:
            at[-1] += spec.element_stride[spec.rank - 1]


def _wide_rows(spec: TensorMapSpec, mode: str, coords: Sequence[int], offset: int) -> Iterator[Row]:
    """The walk along W alone (5.5.5): H and D stay, past the end of the box comes the next image. The offset of the

    instruction moves the start and both ends of the box.
    """
    low, high = tensor_map.bounding_box(spec)[0]
    w, image = coords[1] + offset, coords[-1]
    for _ in range(pixel_count(spec, mode)):
        yield (coords[0], w, *coords[2:-1], image)
        w += spec.element_stride[1]
        if w > high + offset:
            w = low + offset
            image += spec.element_stride[spec.rank - 1]


# --- from rows to runs --------------------------------------------------------------------------------


def _clipped(spec: TensorMapSpec, row: Row, inner: int) -> Iterator[tuple[int, int | None, int]]:
    """(offset in the row, global address or ``None`` outside the tensor, length), in order (5.5.3.3)."""
    if any(not 0 <= x < size for x, size in zip(row[1:], spec.global_dim[1:], strict=False)):
        yield 0, None, inner
        return
    size = tensor_map.element_size(spec.elemtype)
    if tensor_map.slice_bytes(spec):
        yield from _slices(spec, row, inner)
        return
    begin = row[0] * size
    first = min(max(0, -begin), inner)
    last = max(first, min(inner, spec.global_dim[0] * size - begin))
    base = spec.global_address + begin + sum(x * t for x, t in zip(row[1:], spec.global_stride, strict=False))
    if first:
        yield 0, None, first
    if last > first:
        yield first, base + first, last - first
    if inner > last:
        yield last, None, inner - last


def _slices(spec: TensorMapSpec, row: Row, inner: int) -> Iterator[tuple[int, int | None, int]]:
    """The same for a row of slices of an interleaved layout, of which some may be left out (5.5.6)."""
    width = tensor_map.slice_bytes(spec)
    base = spec.global_address + sum(x * t for x, t in zip(row[1:], spec.global_stride, strict=False))
    for k in range(inner // width):
        x = row[0] + k * spec.element_stride[0]
        yield k * width, base + x * width if 0 <= x < spec.global_dim[0] else None, width


_ATOMS = {"16B": 16, "32B": 32, "32B+8B": 32, "64B": 64}


def swizzle(spec: TensorMapSpec, address: int) -> int:
    """Where the byte at ``address`` of the unswizzled image goes; addresses are absolute (5.5.7)."""
    span = tensor_map.swizzle_span(spec)
    if span == 0:
        return address
    if span == 96:
        return address ^ (address >> 3 & 16)
    atom = _ATOMS[spec.swizzle_atomicity]
    moved = address ^ (address >> 7 & (span // atom - 1)) * atom
    if spec.swizzle_atomicity == "32B+8B":
        moved ^= (address >> 7 & 1) << 3
    return moved


def swizzled(spec: TensorMapSpec, addresses: Integers) -> Integers:
    """``swizzle`` of many addresses at once."""
    span = tensor_map.swizzle_span(spec)
    if span == 0:
        return addresses
    if span == 96:
        return addresses ^ ((addresses >> 3) & 16)
    atom = _ATOMS[spec.swizzle_atomicity]
    moved = addresses ^ (((addresses >> 7) & (span // atom - 1)) * atom)
    if spec.swizzle_atomicity == "32B+8B":
        moved = moved ^ (((addresses >> 7) & 1) << 3)
    return moved


def pixels(spec: TensorMapSpec, mode: str, coords: Sequence[int], info: Sequence[int]) -> Integers:
    """The pixels of an im2col copy, shape (pixels, rank - 1), by counting instead of walking.

    Along each dimension the walk is at its start for the first round and at the low corner for every later one, so the
    n-th pixel follows from quotients and remainders (5.5.4.2).
    """
    import numpy as np

    n = np.arange(pixel_count(spec, mode), dtype=np.int64)
    out = np.empty((len(n), spec.rank - 1), np.int64)
    if mode in WIDE:
        out[:] = np.array(coords[1:], np.int64)
        box: Sequence[tuple[int, int]] = tensor_map.bounding_box(spec)[:1]
        offsets: Sequence[int] = (info[1],)
    else:
        box, offsets = tensor_map.bounding_box(spec), tuple(info) or (0,) * (spec.rank - 2)
    for i, (low, high) in enumerate(box):
        start, step = coords[i + 1], spec.element_stride[i + 1]
        later = n - ((high - start) // step + 1)
        each = (high - low) // step + 1
        first = later < 0
        out[:, i] = np.where(first, start + n * step, low + later % each * step) + offsets[i]
        n = np.where(first, 0, 1 + later // each)
    out[:, -1] = coords[-1] + n * spec.element_stride[spec.rank - 1]
    return out


def _swizzled(spec: TensorMapSpec, shared: int, start: int, address: int | None, length: int) -> Iterator[TensorRun]:
    """A run of the unswizzled image in pieces that stay together."""
    if spec.swizzle_mode == "none":
        yield TensorRun(start, address, length)
        return
    unit = 8 if spec.swizzle_atomicity == "32B+8B" else 16
    done = 0
    while done < length:
        at = shared + start + done
        piece = min(unit - at % unit, length - done)
        yield TensorRun(swizzle(spec, at) - shared, None if address is None else address + done, piece)
        done += piece


def _append(runs: list[TensorRun], run: TensorRun) -> None:
    """Merges a run into the last one if it follows it on both sides."""
    if runs:
        last = runs[-1]
        follows = last.address is None if run.address is None else last.address == run.address - last.length
        if follows and last.offset + last.length == run.offset:
            runs[-1] = TensorRun(last.offset, last.address, last.length + run.length)
            return
    runs.append(run)
