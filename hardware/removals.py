"""Modules without the synchronisation that ``mcheck fences`` says can go, and the launches that compare them on a chip.

    python -m hardware.removals [PATH...]

examines the modules, or those named, and writes ``hardware/removals.json``: for each, the instructions that go or
become weaker together, with their lines. ``hardware.fences_removed`` runs the modules with and without.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

from mcheck.checking.fences.examination import Limits, examine

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "tests" / "simt" / "corpus"
VERSION = "8.6"
"""Of the PTX ISA, of what is run."""
LIST = Path(__file__).with_name("removals.json")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A module of the corpus with a launch for a chip: many CTAs, and many rounds of the loop of each."""

    path: str
    """In the corpus, without its ending."""
    grid: tuple[int, ...]
    rounds: int
    """Of the loop of a CTA; 1 without a loop."""
    parameters: dict[str, int | dict[str, Any]]
    """As in a launch file; others, and the other extents, are those of the corpus's launch."""
    result: str
    """The parameter whose buffer is compared."""

    @property
    def text(self) -> str:
        """The module."""
        return (CORPUS / f"{self.path}.ptx").read_text(encoding="utf-8")

    @property
    def ctas(self) -> int:
        """The CTAs of the grid."""
        return prod(self.grid)

    @property
    def launch(self) -> dict[str, Any]:
        """In the form of a launch file."""
        given = json.loads((CORPUS / f"{self.path}.json").read_text(encoding="utf-8"))
        return {**given, "grid": list(self.grid), "params": {**given["params"], **self.parameters}}


def _buffer(size: int) -> dict[str, Any]:
    return {"buffer": size}


def _map(size: int, elemtype: str, dims: list[int], strides: list[int], **more: Any) -> dict[str, Any]:
    rank = len(dims)
    tensor = {
        "global_address": _buffer(size), "elemtype": elemtype, "rank": rank, "global_dim": dims,
        "global_stride": strides, "element_stride": [1] * rank, "interleave_layout": "none", "swizzle_mode": "none",
        "fill_mode": "zero",
    }  # fmt: skip
    return {"tensormap": {**tensor, **more}}


def _matrix(box: list[int], extent: int = 2048) -> dict[str, Any]:
    sizes = (2 * extent * extent, "f16", [extent, extent], [2 * extent])
    return _map(*sizes, box_dim=box, swizzle_mode="128B")


IMAGE = _map(
    32768 * 264, "f32", [32, 16, 16, 264], [128, 2048, 32768], pixel_box_lower_corner=[-1, -1],
    pixel_box_upper_corner=[-1, -1], channels_per_pixel=32, pixels_per_column=64,
)  # fmt: skip
ROW = 512 * 264
"""Bytes of four for each of 128 threads of 264 CTAs."""
COMPARISONS = (
    Comparison("cuda/barrier_tx", (264,), 1024, {"0": _buffer(1 << 22), "1": _buffer(ROW), "2": 1024}, "1"),
    Comparison("cuda/multicast", (264,), 1024, {"0": _buffer(1 << 22), "1": _buffer(ROW), "2": 1024}, "1"),
    Comparison("cuda/remote_write", (264,), 4096, {"0": _buffer(ROW), "1": _buffer(ROW // 2), "2": 4096}, "1"),
    Comparison("cuda/im2col_conv", (264,), 1024, {"0": IMAGE, "1": _buffer(ROW), "2": 1024}, "1"),
    Comparison("cuda/bulk_store", (264,), 64, {"0": _buffer(ROW * 128), "1": _buffer(ROW * 128), "2": 64}, "1"),
    Comparison("cuda/bulk_to_peer", (8448,), 1, {"0": _buffer(32 * ROW), "1": _buffer(32 * ROW)}, "1"),
    Comparison(
        "triton/matmul_descriptors_sm90", (16, 16), 32,
        {
            "0": _matrix([64, 128]), "5": _matrix([64, 64]), "10": _matrix([64, 128]),
            **dict.fromkeys(("1", "2", "3", "6", "7", "8", "11", "12", "13", "15"), 2048),
        },
        "10",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Removal:
    """An instruction of a module that goes, or becomes another one."""

    line: int
    instruction: str
    replacement: str | None


def for_driver(text: str) -> str:
    """The module for a driver that is older than its compiler, of which nothing of this release is used."""
    return re.sub(r"^\.version .*", f".version {VERSION}", text, count=1, flags=re.MULTILINE)


def without(text: str, removals: tuple[Removal, ...]) -> str:
    """The module without the instructions, each of which its line has to contain."""
    lines = text.split("\n")
    for each in removals:
        before = lines[each.line - 1]
        words = " ".join(before.split())
        if each.instruction not in words:
            raise ValueError(f"line {each.line} is {before!r}, not {each.instruction!r}")
        lines[each.line - 1] = "\t" + words.replace(each.instruction, each.replacement or "", 1)
    return "\n".join(lines)


def read_removals() -> dict[str, tuple[Removal, ...]]:
    """The committed list; a module that has changed since is no entry of it."""
    kept = json.loads(LIST.read_text(encoding="utf-8"))
    current = {each.path: _digest(each.text) for each in COMPARISONS}
    return {
        path: tuple(Removal(**each) for each in entry["together"])
        for path, entry in kept.items()
        if entry["text"] == current.get(path)
    }


def find_removals(comparison: Comparison) -> tuple[Removal, ...]:
    """What ``mcheck fences`` says can go together, of the module as the corpus launches it."""
    found = examine(str(CORPUS / f"{comparison.path}.ptx"), Limits(timeout=540))
    if found.removals is None:
        raise ValueError(f"{comparison.path} is {found.verdict}")
    return tuple(
        Removal(edit.line, " ".join(edit.instruction.split()), edit.replacement and " ".join(edit.replacement.split()))
        for edit in sorted(found.removals.together, key=lambda each: each.line)
    )


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def main() -> int:
    """Writes the list."""
    kept = json.loads(LIST.read_text(encoding="utf-8")) if LIST.exists() else {}
    kept |= {
        each.path: {
            "text": _digest(each.text),
            "together": [
                {"line": one.line, "instruction": one.instruction, "replacement": one.replacement}
                for one in find_removals(each)
            ],
        }
        for each in COMPARISONS
        if each.path in (sys.argv[1:] or kept.keys() | {each.path})
    }
    LIST.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
