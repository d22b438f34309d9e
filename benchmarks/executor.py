"""Times of the concrete engine's data paths beside NumPy's own work on the same bytes.

    python benchmarks/executor.py

A 5-D tile of 64 KiB with a 128-byte swizzle and bounds, the first time and with a map that was used before, and one
that lies within its tensor; reductions of 1 MiB, and of 16. Each figure is the best of several runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from mcheck.ir.address_map import lay_out
from mcheck.ir.memory import Cta, MemObject, TensorMapSpec
from mcheck.semantics import arrays, tensor_transfer
from mcheck.semantics.memory import Memory

TENSOR, SHARED = 1 << 20, 1 << 17


def best(action: Callable[[], object], runs: int = 50) -> float:
    """The shortest of some runs, in milliseconds."""
    times = []
    for _ in range(runs):
        start = perf_counter()
        action()
        times.append(perf_counter() - start)
    return 1000 * min(times)


def tiles() -> dict[str, float]:
    """Milliseconds of a load: the first time, repeated with the same map, within the tensor, and of a plain copy."""
    objects = [
        MemObject(name="t", space="global", elem="b8", elem_size=1, size=TENSOR, init=bytes(TENSOR)),
        MemObject(name="s", space="shared", elem="b8", elem_size=1, size=SHARED, align=1024),
    ]
    layout = lay_out(objects, [Cta(0, 0, 0, 0)])
    memory = Memory(layout)
    tensor, shared = layout.instances
    first = []
    for extra in range(20):
        # Another map every time, so that nothing is remembered.
        spec = TensorMapSpec(
            tensor.base, "f16", 5, (60, 7, 8, 5, 8 + extra), (128, 1024, 8192, 5 * 8192), (1,) * 5, (64, 8, 8, 8, 1),
            swizzle_mode="128B",
        )  # fmt: skip
        start = perf_counter()
        tensor_transfer.load(memory, spec, "tile", (0, -1, 0, 1, 2), shared.base)
        first.append(1000 * (perf_counter() - start))
    repeated = best(lambda: tensor_transfer.load(memory, spec, "tile", (0, 1, 0, -1, 3), shared.base))
    whole = TensorMapSpec(
        tensor.base,
        "f16",
        5,
        (64, 8, 8, 8, 8),
        (128, 1024, 8192, 1 << 16),
        (1,) * 5,
        (64, 8, 8, 8, 1),
        swizzle_mode="128B",
    )
    inside = best(lambda: tensor_transfer.load(memory, whole, "tile", (0, 0, 0, 0, 3), shared.base))
    source, target = np.zeros(1 << 16, np.uint8), np.zeros(1 << 16, np.uint8)
    return {
        "first": min(first),
        "repeated": repeated,
        "inside": inside,
        "copy": best(lambda: np.copyto(target, source)),
    }


def reductions() -> dict[tuple[int, str], tuple[float, float]]:
    """By MiB and type: milliseconds of an addition, and of NumPy's own addition."""
    rng = np.random.default_rng(1)
    out = {}
    for size, type_, dtype in ((1, "u32", "<u4"), (1, "f32", "<f4"), (16, "f32", "<f4"), (1, "f16", "<f2")):
        a, b = (rng.integers(0, 200, (size << 20) // np.dtype(dtype).itemsize).astype(dtype) for _ in range(2))
        x, y = a.view(np.uint8), b.view(np.uint8)
        ours, theirs = partial(arrays.reduce_array, "add", type_, x, y), partial(np.add, a, b)
        out[size, type_] = best(ours, 15), best(theirs, 15)
    return out


def main() -> None:
    """Prints the figures."""
    found = tiles()
    print(f"tile of 64 KiB, first  {found['first']:8.3f} ms")
    for what, name in (("repeated", "again"), ("inside", "whole")):
        print(f"tile of 64 KiB, {name}  {found[what]:8.3f} ms  ({found[what] / found['copy']:.0f} times a plain copy)")
    for (size, type_), (ours, theirs) in reductions().items():
        print(f"add of {size:2} MiB {type_:4}     {ours:8.3f} ms  ({ours / theirs:.1f} times NumPy)")


if __name__ == "__main__":
    main()
