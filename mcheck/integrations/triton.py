"""The launch of a kernel that Triton or Gluon compiled, from its metadata and the arguments it is called with.

    source = ASTSource(kernel, {"a": "*fp16", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 128})
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    answer = mcheck.ptx.check(compiled.asm["ptx"], launch(compiled, (64,), [a, n]))

Nothing is run and no driver is asked (``kernel.warmup`` would ask one for the target): the tensor maps that Triton
would have encoded are described from the shapes of the descriptors and the boxes of the metadata.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcheck.base.errors import InputError
from mcheck.integrations.arguments import BYTES, Json, Tensor, buffer, number, size_of

_SWIZZLES = ("none", "32B", "64B", "128B")
# The order of elemtype in tensormap.replace (PTX ISA 9.7.9.28), which Triton's metadata numbers.
_ELEMENT_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32.ftz", "f64", "bf16", "tf32", "tf32.ftz",
                  "b4x16", "b4x16_p64", "b6x16_p32")  # fmt: skip
_REQNTID = re.compile(r"^\s*\.reqntid\s+(\d+)", re.MULTILINE)


def launch(compiled: Any, grid: Sequence[Any], arguments: Mapping[str, Any] | Sequence[Any]) -> dict[str, Json]:
    """The launch of ``compiled`` on ``grid`` programs, in the form of a launch file.

    ``arguments`` are the kernel's by name, or in order: all of them, or all that are no ``tl.constexpr``. A pointer is
    a tensor (with memory or without), an ``arguments.Tensor``, ``{"buffer": BYTES}`` or None; a descriptor is a
    ``TensorDescriptor`` or the ``Tensor`` that it describes; a number is one, or ``"any"``.

    Raises ``InputError`` for an argument that is missing, unknown or of another kind than the signature says.
    """
    metadata = compiled.metadata
    programs = tuple(grid) + (1,) * (3 - len(grid))
    if not grid or len(programs) != 3 or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in programs):
        raise InputError(f"the grid is {tuple(grid)}: expected one to three positive numbers")
    ctas = getattr(metadata, "num_ctas", 1)
    values = [value for _, value in _values(compiled, arguments)]
    values += _scratch(metadata, math.prod(programs) * ctas)
    found: dict[str, Json] = {
        "entry": metadata.name,
        "grid": [programs[0] * ctas, programs[1], programs[2]],
        "block": [_threads(compiled), 1, 1],
        "shared": metadata.shared,
        "params": {str(i): value for i, value in enumerate(values)},
    }
    if ctas > 1:
        found["cluster"] = [ctas, 1, 1]
    return found


def parameter_names(compiled: Any, arguments: Mapping[str, Any] | Sequence[Any]) -> list[str]:
    """The names that the source has for the parameters of the module, in their order; empty for those that it has none
    for, such as the strides of a descriptor. A file of Triton's IR has no names: there they are the numbers.
    """
    return [name for name, _ in _values(compiled, arguments)]


def _threads(compiled: Any) -> int:
    """The threads of a CTA: all warps, those of specialised partitions, which only the module gives, included."""
    required = _REQNTID.search(compiled.asm["ptx"])
    return int(required[1]) if required else int(compiled.metadata.num_warps) * 32


def _values(compiled: Any, arguments: Mapping[str, Any] | Sequence[Any]) -> Iterator[tuple[str, Json]]:
    signature: dict[str, Any] = {str(name): kind for name, kind in compiled.src.signature.items()}
    given = _by_name(signature, arguments)
    maps = iter(getattr(compiled.metadata, "tensordesc_meta", None) or ())
    for name, kind in signature.items():
        if kind == "constexpr":
            continue
        if name not in given:
            raise InputError(f"argument '{name}' of {compiled.metadata.name} ({kind}) is missing")
        yield from _flat(name, kind, given[name], maps)


def _by_name(signature: Mapping[str, Any], arguments: Mapping[str, Any] | Sequence[Any]) -> Mapping[str, Any]:
    if isinstance(arguments, Mapping):
        unknown = [name for name in arguments if name not in signature]
        if unknown:
            raise InputError(f"the kernel has no argument '{unknown[0]}': it has {', '.join(signature)}")
        return arguments
    runtime = [name for name, kind in signature.items() if kind != "constexpr"]
    for names in (runtime, list(signature)):
        if len(names) == len(arguments):
            return dict(zip(names, arguments, strict=True))
    raise InputError(f"the kernel takes {len(runtime)} arguments, {len(arguments)} given: {', '.join(runtime)}")


def _flat(name: str, kind: Any, value: Any, maps: Iterator[Mapping[str, Any]]) -> Iterator[tuple[str, Json]]:
    """The parameters of an argument with their names: tuples and descriptors become several."""
    if isinstance(kind, tuple):
        for i, (inner, part) in enumerate(zip(kind, value, strict=True)):
            if inner != "constexpr":
                yield from _flat(f"{name}[{i}]", inner, part, maps)
    elif kind.startswith("tensordesc"):
        first, *sizes = _descriptor(name, kind, value, next(maps, None))
        yield name, first
        yield from (("", size) for size in sizes)
    elif kind.startswith("*"):
        yield name, buffer(value)
    else:
        yield name, number(value, kind)


def _descriptor(name: str, kind: str, value: Any, meta: Mapping[str, Any] | None) -> Iterator[Json]:
    """A descriptor: its map, or (where the target has no tensor copies) its pointer; then its shape and its strides."""
    if isinstance(value, Tensor):
        base, shape, strides, padding = buffer(value), value.shape, value.steps, "zero"
    elif hasattr(value, "base") and hasattr(value, "strides"):
        shape, strides = tuple(value.shape), tuple(value.strides)
        base, padding = _base(value.base, shape, strides, kind), value.padding
    else:
        raise InputError(
            f"got {type(value).__name__} for the tensor descriptor '{name}': expected a TensorDescriptor or"
            " mcheck.integrations.arguments.Tensor"
        )
    if meta is None:
        yield base
        yield from (*shape, *strides, int(padding == "nan"), int(getattr(value, "round_f32_to_tf32", False)))
    else:
        yield {"tensormap": _map(value, base, shape, strides, padding, meta)}
    yield from (*shape, *strides)


def _base(value: Any, shape: Sequence[int], strides: Sequence[int], kind: str) -> dict[str, Json]:
    """The tensor under a descriptor; without a known size it is as large as its shape."""
    found = buffer(value)
    element = re.match(r"tensordesc\w*<(\w+)", kind)
    if found.get("buffer", 0) is None and element and element[1] in BYTES:
        return {"buffer": size_of(shape, strides, BYTES[element[1]])}
    return found


def _map(
    value: Any, base: Json, shape: Sequence[int], strides: Sequence[int], padding: str, meta: Mapping[str, Any]
) -> dict[str, Json]:
    """The fields of the map, innermost dimension first (PTX ISA 5.5); strides in bytes."""
    size = int(meta["elem_size"])
    extents = list(shape)
    if meta.get("fp4_padded"):  # two elements to a byte, eight bytes of them in sixteen of the tile
        extents[-1] *= 2
    rank = len(extents)
    steps = getattr(value, "element_strides", None) or (1,) * rank
    kind = "tf32" if getattr(value, "round_f32_to_tf32", False) else _ELEMENT_TYPES[meta["elem_type"]]
    found: dict[str, Json] = {
        "global_address": base,
        "elemtype": kind,
        "rank": rank,
        "global_dim": extents[::-1],
        "global_stride": [step * size for step in strides[-2::-1]],
        "element_stride": list(steps)[::-1],
        "interleave_layout": "none",
        "swizzle_mode": _SWIZZLES[meta["swizzle"]],
        "fill_mode": padding,
    }
    box = list(meta["block_size"])
    if meta.get("is_im2col"):
        found["pixels_per_column"], found["channels_per_pixel"] = box
        found["pixel_box_lower_corner"] = list(value.pixel_box_lower_corner)[::-1]
        found["pixel_box_upper_corner"] = list(value.pixel_box_upper_corner)[::-1]
    else:
        found["box_dim"] = box[::-1]
    return found


def _scratch(metadata: Any, ctas: int) -> list[Json]:
    """The two pointers that Triton appends: scratch memory of the kernel (for maps built there) and of its profiler."""
    sizes = (getattr(metadata, "global_scratch_size", 0), getattr(metadata, "profile_scratch_size", 0))
    return [{"buffer": size * ctas if size else None} for size in sizes]
