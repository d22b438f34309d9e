"""Kernel arguments in the form of a launch file: buffers by their size, numbers, tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, TypeAlias

from mcheck.base.errors import InputError
from mcheck.base.records import dataclass

Json: TypeAlias = dict[str, Any] | list[Any] | str | int | float | bool | None

BYTES = {
    "i1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8,
    "fp8e4nv": 1, "fp8e5": 1, "fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8,
}  # fmt: skip
"""The size of an element by Triton's name of its type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A tensor without memory: ``shape`` and ``strides`` in elements, outermost first; dense without ``strides``."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.dtype not in BYTES:
            raise InputError(f"unknown element type '{self.dtype}': expected one of {', '.join(BYTES)}")
        if self.strides and len(self.strides) != len(self.shape):
            raise InputError(f"a tensor of {len(self.shape)} dimensions has {len(self.strides)} strides")

    @property
    def steps(self) -> tuple[int, ...]:
        """The strides, or those of a dense tensor if none are given."""
        return self.strides or tuple(prod(self.shape[i + 1 :]) for i in range(len(self.shape)))

    @property
    def bytes(self) -> int:
        """The bytes from the first byte of the first element to the last one of the last."""
        last = sum((size - 1) * step for size, step in zip(self.shape, self.steps, strict=True))
        return (last + 1) * BYTES[self.dtype]


def buffer(value: Any) -> dict[str, Json]:
    """A pointer: a ``Tensor``, a tensor of PyTorch or NumPy, ``{"buffer": …}``, or None for an unknown size."""
    if isinstance(value, dict):
        return value
    if isinstance(value, Tensor):
        return {"buffer": value.bytes}
    if value is None:
        return {"buffer": None}
    if hasattr(value, "untyped_storage"):  # PyTorch: the view may begin inside its storage
        offset = value.storage_offset() * value.element_size()
        return {"buffer": value.untyped_storage().nbytes() - offset}
    if hasattr(value, "nbytes"):
        return {"buffer": int(value.nbytes)}
    if hasattr(value, "data_ptr"):
        return {"buffer": None}
    raise InputError(
        f"got {type(value).__name__} for a pointer: expected a tensor, mcheck.integrations.arguments.Tensor, or"
        " {'buffer': BYTES}"
    )


def number(value: Any, kind: str) -> Json:
    """A scalar argument of Triton's type ``kind``; ``"any"`` is every value, ``{"buffer": …}`` an address."""
    if value == "any" or (isinstance(value, dict) and "buffer" in value and kind in ("i64", "u64")):
        return value  # type: ignore[no-any-return]
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return float(value) if kind.startswith(("fp", "bf")) else int(value)
    raise InputError(f"expected a number for type {kind}, got {type(value).__name__}")


def size_of(shape: Sequence[int], strides: Sequence[int], element: int) -> int:
    """Bytes from the first element to the end of the last; strides in elements."""
    return (sum((size - 1) * step for size, step in zip(shape, strides, strict=True)) + 1) * element
