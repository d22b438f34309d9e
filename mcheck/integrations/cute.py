"""The launch of a kernel in CuTe DSL, from what its host function says: the grid, and a tensor map for each copy atom.

    launch(grid=(4,), shared=41088, arguments=[Map(source, box=(64, 32)), Map(target, box=(64, 32)), 2.0])

The module is what CuTe DSL leaves in its dump folder (docs/ptx-modules.md); it states the threads of a CTA.
"""

from __future__ import annotations

import subprocess
import sys
from argparse import REMAINDER, ArgumentParser
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcheck.base.errors import InputError
from mcheck.base.records import dataclass
from mcheck.integrations.arguments import BYTES, Json, Tensor, buffer

_SWIZZLES = ("none", "32B", "64B", "128B")
_ELEMENT_TYPES = {
    "u8": "u8", "i8": "u8", "u16": "u16", "i16": "u16", "u32": "u32", "i32": "s32", "u64": "u64", "i64": "s64",
    "fp16": "f16", "bf16": "bf16", "fp32": "f32", "fp64": "f64", "fp8e4nv": "u8", "fp8e5": "u8",
}  # fmt: skip
"""Those of ``tensormap.replace`` by Triton's names; eight bits are bytes to a copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """The tensor map of a copy atom: the ``tensor`` in global memory and the ``box``, outermost dimension first.

    ``swizzle`` is that of the layout in shared memory: ``none``, ``32B``, ``64B`` or ``128B``.
    """

    tensor: Tensor
    box: tuple[int, ...]
    swizzle: str = "none"

    def __post_init__(self) -> None:
        if len(self.box) != len(self.tensor.shape):
            raise InputError(f"the box has {len(self.box)} dimensions, the tensor {len(self.tensor.shape)}")
        if self.swizzle not in _SWIZZLES:
            raise InputError(f"unknown swizzle '{self.swizzle}': expected one of {', '.join(_SWIZZLES)}")
        if self.tensor.dtype not in _ELEMENT_TYPES:
            raise InputError(f"a tensor map has no elements of type '{self.tensor.dtype}'")
        if self.tensor.steps[-1] != 1:
            raise InputError(f"the innermost stride is {self.tensor.steps[-1]}: a tensor map wants 1")

    def to_json(self) -> dict[str, Json]:
        """The fields of the map, innermost dimension first (PTX ISA 5.5); strides in bytes."""
        size = BYTES[self.tensor.dtype]
        return {
            "global_address": buffer(self.tensor),
            "elemtype": _ELEMENT_TYPES[self.tensor.dtype],
            "rank": len(self.box),
            "global_dim": list(self.tensor.shape)[::-1],
            "global_stride": [step * size for step in self.tensor.steps[-2::-1]],
            "box_dim": list(self.box)[::-1],
            "element_stride": [1] * len(self.box),
            "interleave_layout": "none",
            "swizzle_mode": self.swizzle,
            "fill_mode": "zero",
        }


def launch(
    *, grid: Sequence[int], arguments: Sequence[Any], shared: int = 0, cluster: Sequence[int] = ()
) -> dict[str, Json]:
    """The launch on ``grid`` CTAs with ``shared`` bytes of dynamic shared memory, in the form of a launch file.

    ``arguments`` are the parameters of the module in order: a ``Map`` for a copy atom, a ``Tensor`` (or what else
    ``arguments.buffer`` takes) for a pointer, a number, None for one that is unknown, or a dictionary as it stands in
    a launch file.
    """
    found: dict[str, Json] = {"grid": [*grid]}
    if cluster:
        found["cluster"] = [*cluster]
    found["shared"] = shared
    found["params"] = {str(k): _parameter(value) for k, value in enumerate(arguments) if value is not None}
    return found


def _parameter(value: Any) -> Json:
    if isinstance(value, Map):
        return {"tensormap": value.to_json()}
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, int | float | dict) else buffer(value)


def main(arguments: Sequence[str]) -> int:
    """Runs a program in CuTe DSL without a GPU and checks each launch that it makes, as ``mcheck check`` does.

    Exit status: that of ``mcheck check`` about the modules; 2 if there is nothing to check.
    """
    from mcheck.integrations.cute_recording import run_program

    parser = ArgumentParser(prog="python -m mcheck.integrations.cute", description=main.__doc__)
    parser.add_argument("--arch", default="sm_90a", help="the target (sm_90a)")
    parser.add_argument("--keep", metavar="DIR", help="where modules and launches are written")
    parser.add_argument("program", help="a program of Python")
    parser.add_argument("arguments", nargs=REMAINDER, help="what it is called with")
    asked = parser.parse_args(arguments)
    with ExitStack() as stack:
        folder = Path(asked.keep or stack.enter_context(TemporaryDirectory(prefix="mcheck-cute-")))
        try:
            recorder = run_program(asked.program, asked.arguments, folder, asked.arch)
        except InputError as error:
            sys.stderr.write(f"error: {error.message}\n")
            return 2
        if recorder.ended:
            sys.stderr.write(f"warning: {recorder.ended}\n")
        for problem in recorder.problems:
            sys.stderr.write(f"error: not recorded: {problem}\n")
        if not recorder.paths:
            sys.stderr.write("error: the program has launched no kernel\n")
            return 2
        checked = [sys.executable, "-m", "mcheck", "check", *map(str, recorder.paths.values())]
        done = subprocess.run(checked, check=False)
        return 2 if recorder.problems else done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
