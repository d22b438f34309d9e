"""Random tensor maps, tiled ones and their starts; the declaration of a map in a program."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from random import Random

SIZES = {"u8": 1, "u16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "f16": 2, "f32": 4, "f32.ftz": 4, "f64": 8,
         "bf16": 2, "tf32": 4, "tf32.ftz": 4}  # fmt: skip
FLOATS = ("f16", "bf16", "f32", "f32.ftz", "f64", "tf32", "tf32.ftz")


@dataclass(slots=True)
class Map:
    """The fields of a tensor map declaration; the tensor is the object ``t``."""

    elemtype: str
    dims: list[int]
    strides: list[int]
    box: list[int]
    steps: list[int]
    swizzle: str = "none"
    fill: str = "zero"
    interleave: str = "none"
    lower: list[int] = field(default_factory=list)
    upper: list[int] = field(default_factory=list)
    channels: int = 0
    pixels: int = 0

    @property
    def size(self) -> int:
        return SIZES[self.elemtype]

    @property
    def tensor_bytes(self) -> int:
        step = self.size if self.interleave == "none" else int(self.interleave[:-1])
        return max(s * n for s, n in zip([step, *self.strides], self.dims, strict=True))

    @property
    def rows(self) -> int:
        if self.pixels:
            return self.pixels
        counts = [-(-box // step) for box, step in zip(self.box, self.steps, strict=True)]
        if self.interleave != "none":
            counts[-2] = 1
        return prod(counts[1:])

    @property
    def inner(self) -> int:
        if self.interleave != "none":
            return -(-self.box[0] // self.steps[0]) * int(self.interleave[:-1])
        return (self.channels or self.box[0]) * self.size

    @property
    def box_bytes(self) -> int:
        return self.rows * self.inner

    @property
    def image_bytes(self) -> int:
        span = 0 if self.swizzle == "none" else int(self.swizzle[:-1])
        if self.interleave != "none":
            return -(-self.rows * self.inner // 1024) * 1024
        return self.rows * max(self.inner, span)

    def text(self) -> str:
        def braces(values: list[int]) -> str:
            return "{" + ", ".join(map(str, values)) + "}"

        shape = (
            f"pixel_box_lower_corner = {braces(self.lower)}, pixel_box_upper_corner = {braces(self.upper)}, "
            f"channels_per_pixel = {self.channels}, pixels_per_column = {self.pixels}"
            if self.pixels
            else f"box_dim = {braces(self.box)}"
        )
        return (
            f"  .global .tensormap tm = {{ global_address = t, elemtype = {self.elemtype}, rank = {len(self.dims)}, "
            f"global_dim = {braces(self.dims)}, global_stride = {braces(self.strides)}, {shape}, "
            f"element_stride = {braces(self.steps)}, interleave_layout = {self.interleave}, "
            f"swizzle_mode = {self.swizzle}, swizzle_atomicity = 16B, fill_mode = {self.fill} }};\n"
        )


def strides(rng: Random, size: int, dims: list[int], grain: int = 16) -> list[int]:
    """Byte strides: rows padded to the grain, and now and then some more."""
    out = []
    total = -(-dims[0] * size // grain) * grain
    for n in dims[1:]:
        total += grain * rng.choice([0, 0, 0, 1])
        out.append(total)
        total *= n
    return out


def tiled(rng: Random, rank: int, elemtype: str, swizzle: str, limit: int = 2048) -> Map:
    """A tiled map whose box has at most ``limit`` bytes in shared memory."""
    size = SIZES[elemtype]
    span = 256 if swizzle == "none" else int(swizzle[:-1])
    inner = 16 * rng.choice(list(range(1, span // 16 + 1))) // size
    dims = [rng.randint(1, max(2, 3 * inner // 2)), *(rng.randint(1, 6) for _ in range(rank - 1))]
    box, steps = [inner], [rng.randint(1, 3)]
    rows = max(1, limit // max(inner * size, 0 if swizzle == "none" else span))
    for _ in range(rank - 1):
        step = rng.choice([1, 1, 1, 2, 3])
        count = rng.randint(1, min(5, max(1, rows)))
        rows //= count
        box.append(count * step - rng.randint(0, step - 1))
        steps.append(step)
    fill = "nan" if elemtype in FLOATS and rng.random() < 0.4 else "zero"
    return Map(elemtype, dims, strides(rng, size, dims), box, steps, swizzle, fill)


def start(rng: Random, m: Map, *, negative: bool) -> list[int]:
    """Start coordinates near the tensor, dimension 0 at a multiple of 16 bytes."""
    grain = 16 // m.size or 1
    low = -2 if negative else 0
    first = grain * rng.randint(low, m.dims[0] // grain + (1 if rng.random() < 0.2 else 0))
    rest = [rng.randint(low if rng.random() < 0.5 else 0, n) for n in m.dims[1:]]
    if rng.random() < 0.5:
        rest = [rng.randint(0, max(0, n - 1)) for n in m.dims[1:]]
        first = grain * rng.randint(0, max(0, (m.dims[0] - 1) // grain))
    return [first, *rest]
