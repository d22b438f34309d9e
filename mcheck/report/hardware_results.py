"""Hardware observations: the result files of ``hardware/litmus``, indexed by the hash of a test's text.

Each line of JSON describes a run (device, driver, date, pass), the result of a test in it (counts by state; instances
and hits of the target states by setting), or the text of a test.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

from mcheck.base.records import dataclass

_CHECKOUT = Path(__file__).resolve().parents[2] / "hardware" / "observations"

Values = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """The device, driver and date of a pass."""

    device: str
    driver: str
    date: str
    name: str


@dataclass(slots=True)
class Observation:
    """The observations of a test in all passes; ``by_setting`` has instances and hits of the target states.

    ``contents``: arrays that only copies read had contents of their own (``hardware/litmus/observe.py``).
    """

    name: str
    hash: str
    terms: tuple[str, ...] = ()
    text: str = ""
    contents: bool = False
    statuses: list[str] = field(default_factory=list)
    states: Counter[Values] = field(default_factory=Counter)
    stuck: int = 0
    lost: int = 0
    by_setting: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def instances(self) -> int:
        """The number of instances that terminated."""
        return sum(self.states.values())

    @property
    def hits(self) -> int:
        """The number of target states seen: states of an ``exists``, violations of a ``forall``, unintended final
        states of a sketch.
        """
        return sum(hits for _, hits in self.by_setting.values())

    @property
    def strongest_setting(self) -> tuple[str, float]:
        """The setting with the highest rate of target states, and the rate."""
        rates = [(hits / count, name) for name, (count, hits) in self.by_setting.items() if count]
        best = max(rates, default=(0.0, ""))
        return best[1], best[0]


def observation_file(chip: str = "h200") -> Path:
    """The file with the observations of a chip: an H200, which has by far the most, an H100, or two H200 (``h200-x2``).

    A checkout has the files in ``hardware/observations``. They are not part of the wheel: ``MCHECK_OBSERVATIONS``
    names the folder of a download. Without either the file does not exist.
    """
    folder = os.environ.get("MCHECK_OBSERVATIONS")
    return (Path(folder) if folder else _CHECKOUT) / f"{chip}.jsonl.gz"


def hash_text(source: str) -> str:
    """The hash that identifies the text of a test."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Read the JSON lines of a file, compressed or not."""
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield from map(json.loads, file)
    else:
        with path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)


def load(path: Path) -> tuple[list[Run], dict[str, Observation]]:
    """Load the runs, and the observations by hash of the test."""
    runs: list[Run] = []
    found: dict[str, Observation] = {}
    for row in read_records(path):
        if "about" in row:
            about = row["about"]
            runs.append(Run(about["device"], about["driver"], about["date"], row["pass"]))
            continue
        seen = found.setdefault(row["hash"], Observation(row["name"], row["hash"]))
        if "text" in row:
            seen.text = row["text"]
            continue
        watched = tuple(row["terms"]), row.get("contents", False)
        if seen.states and watched != (seen.terms, seen.contents):  # states of other terms are no states of these
            seen.states.clear()
            seen.by_setting.clear()
            seen.stuck = seen.lost = 0
        seen.terms, seen.contents = watched
        seen.statuses.append(row["status"])
        seen.stuck += row.get("stuck", 0)
        seen.lost += row.get("lost", 0)
        for values, count in row.get("states", ()):
            seen.states[tuple(values)] += count
        for name, (count, hits) in row.get("by", {}).items():
            before = seen.by_setting.get(name, (0, 0))
            seen.by_setting[name] = (before[0] + count, before[1] + hits)
    return runs, found
