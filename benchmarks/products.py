#!/usr/bin/env python3
"""How long products of matrices take to check, against their size: seconds, memory, and what twice the size costs.

    python -m benchmarks.products [--sizes N ...]

The module is Triton's product by descriptors (``tests/simt/corpus/triton/matmul_descriptors_sm90``) in tiles of 128 by
128 by 64, launched for square matrices of each size; one CTA of the grid is followed, through all of K. Operations are
those of all lanes, of all ways of electing; seconds are of the processor, everything included, and the memory is the
peak of a process of its own. Exit status 1 if a product is not proved, if one of ``GEMM`` takes more than its seconds
or memory, or the largest more than those of ``LARGEST``, or if twice the size takes more than twice the time.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

MODULE = Path(__file__).resolve().parents[1] / "tests" / "simt" / "corpus" / "triton" / "matmul_descriptors_sm90.ptx"
SIZE, TILE, ELEMENT = 512, 128, 2
"""The size of the launch beside the module, the sides of a CTA's tile, the bytes of an f16."""
SIZES = (1024, 2048, 4096, 8192, 16384)
GEMM = 4096
IN_TIME, LARGEST = (10.0, 1 << 10), (60.0, 2 << 10)
"""Seconds and MiB up to the size ``GEMM``, and of whatever is larger."""


@dataclass(frozen=True, slots=True)
class Row:
    """A size; the operations of all lanes, of each way; seconds of the processor; MiB; the verdict."""

    size: int
    operations: tuple[int, ...]
    seconds: float
    mebibytes: float
    verdict: str


def launch_of(size: int) -> dict[str, Any]:
    """The launch beside the module, for another size."""
    larger = {SIZE: size, SIZE * ELEMENT: size * ELEMENT, SIZE * SIZE * ELEMENT: size * size * ELEMENT}

    def scaled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: scaled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [scaled(item) for item in value]
        return larger.get(value, value) if isinstance(value, int) else value

    given = json.loads(MODULE.with_suffix(".json").read_text(encoding="utf-8"))
    tiles = size // TILE
    return {**given, "grid": [tiles, tiles, 1], "params": scaled(given["params"])}


def measure(size: int) -> Row:
    """A row, in a process of its own."""
    from mcheck.checking.check.modules import check_text
    from mcheck.checking.run.case import Options, Settings
    from mcheck.frontend.ptx.launch_reader import build_launch, from_object
    from mcheck.frontend.ptx.reader import parse_module
    from mcheck.simt.trace_extraction import extract_traces

    text, given = MODULE.read_text(encoding="utf-8"), from_object(launch_of(size))
    started = process_time()
    found = check_text(text, MODULE.name, given, Settings(), Options())
    seconds = process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    read = parse_module(text, MODULE.name)
    operations = tuple(way.operations for way in extract_traces(read, build_launch(read, given)))
    return Row(size, operations, seconds, peak, found.verdict)


def main() -> int:
    """Prints the table; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N")
    options = parser.parse_args()
    print(f"{'size':>6}  {'operations':>14}  {'seconds':>8}  {'MiB':>6}  {'times':>6}  verdict", flush=True)
    wrong = False
    before: Row | None = None
    for size in sorted(options.sizes):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            row = pool.submit(measure, size).result()
        times = row.seconds / before.seconds if before is not None else None
        most = IN_TIME if size <= GEMM else LARGEST
        operations = f"{len(row.operations)} x {max(row.operations):,}"
        shown = f"{times:6.2f}" if times is not None else " " * 6
        print(
            f"{size:6}  {operations:>14}  {row.seconds:8.1f}  {row.mebibytes:6.0f}  {shown}  {row.verdict}", flush=True
        )
        wrong = wrong or row.verdict != "proved" or row.seconds > most[0] or row.mebibytes > most[1]
        if before is not None and times is not None and size <= 2 * before.size:
            wrong = wrong or times > 2
        before = row
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
