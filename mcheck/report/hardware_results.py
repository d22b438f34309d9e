"""What chips showed: the files of results that ``hardware/litmus`` writes, by the hash of a test's text.

A line of JSON is about a run (device, driver, date, pass), the result of a test in it (counts by state, instances and
hits of what was looked for by setting), or the text of a test.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_CHECKOUT = Path(__file__).resolve().parents[2] / "hardware" / "observations"

Values = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """Where and when a pass ran."""

    device: str
    driver: str
    date: str
    name: str


@dataclass(slots=True)
class Observation:
    """What all passes together saw of a test; ``by`` has instances and hits of what was looked for, by setting.

    ``contents``: the arrays that only copies read had contents of their own (``hardware/litmus/observe.py``).
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
    by: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def instances(self) -> int:
        """Instances that ran to their end."""
        return sum(self.states.values())

    @property
    def hits(self) -> int:
        """How often what was looked for was seen: the states of an ``exists``, the violations of a ``forall``, and the
        states that a sketch is not written to end in.
        """
        return sum(hits for _, hits in self.by.values())

    @property
    def strongest(self) -> tuple[str, float]:
        """The setting that showed most of what was looked for, and the share."""
        rates = [(hits / count, name) for name, (count, hits) in self.by.items() if count]
        best = max(rates, default=(0.0, ""))
        return best[1], best[0]


def published(chip: str = "h200") -> Path:
    """The file of what a chip showed: of an H200, by far the most, or of an H100.

    A checkout has the files in ``hardware/observations``. They are not part of the wheel: whoever has downloaded them
    names their folder by ``MCHECK_OBSERVATIONS``. Without either the file does not exist.
    """
    folder = os.environ.get("MCHECK_OBSERVATIONS")
    return (Path(folder) if folder else _CHECKOUT) / f"{chip}.jsonl.gz"


def hash_of(source: str) -> str:
    """What identifies the text of a test."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file, compressed or not."""
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield from map(json.loads, file)
    else:
        with path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)


def load(path: Path) -> tuple[list[Run], dict[str, Observation]]:
    """The runs, and the observations by the hash of the test."""
    runs: list[Run] = []
    found: dict[str, Observation] = {}
    for row in records(path):
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
            seen.by.clear()
            seen.stuck = seen.lost = 0
        seen.terms, seen.contents = watched
        seen.statuses.append(row["status"])
        seen.stuck += row.get("stuck", 0)
        seen.lost += row.get("lost", 0)
        for values, count in row.get("states", ()):
            seen.states[tuple(values)] += count
        for name, (count, hits) in row.get("by", {}).items():
            before = seen.by.get(name, (0, 0))
            seen.by[name] = (before[0] + count, before[1] + hits)
    return runs, found
