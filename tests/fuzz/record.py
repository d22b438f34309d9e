"""Progress of a comparison campaign: counts by heading, saved in a file and resumed from it."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from mcheck.base.errors import InputError

PAUSE = 15.0
"""Seconds between two writings of the file."""


@dataclass(slots=True)
class Record:
    """``what`` says which comparison it is; ``done`` items of it are counted under headings."""

    what: dict[str, str]
    done: int = 0
    seconds: float = 0.0
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    different: list[tuple[str, list[str]]] = field(default_factory=list)

    def count(self, heading: str, name: str, by: float = 1) -> None:
        """One more, or ``by`` more, of a name under a heading."""
        self.counts.setdefault(heading, Counter())[name] += by  # type: ignore[assignment]

    def differs(self, name: str, texts: list[str]) -> None:
        """An item whose answers contradict each other, and how."""
        self.different.append((name, texts))

    def text(self) -> str:
        """The summary, a line per heading."""
        named = ", ".join(f"{key} {value}" for key, value in self.what.items() if value)
        lines = [f"{self.done} ({named}), {len(self.different)} with differences, {self.seconds:.0f} s"]
        for heading, counter in self.counts.items():
            rows = sorted(counter.items(), key=lambda row: (-row[1], row[0]))
            lines.append(f"{heading}: " + ", ".join(f"{name} {round(n, 1):g}" for name, n in rows))
        return "\n".join(lines)

    def save(self, path: Path) -> None:
        """Writes the file, at once or not at all."""
        document = {
            "what": self.what,
            "done": self.done,
            "seconds": self.seconds,
            "counts": self.counts,
            "different": self.different,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(path.suffix + ".new")
        fresh.write_text(json.dumps(document, indent=1), encoding="utf-8")
        fresh.replace(path)


def resume(what: dict[str, str], path: Path | None) -> Record:
    """The record of the file, or a new one; a file of another comparison is not gone on with."""
    if path is None or not path.exists():
        return Record(what)
    record = kept(path)
    if record.what != what:
        raise InputError(f"{path} is the record of another comparison: {record.what}, not {what}")
    return record


def kept(path: Path) -> Record:
    """The record of a file."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return Record(
        document["what"],
        document["done"],
        document["seconds"],
        {heading: Counter(rows) for heading, rows in document["counts"].items()},
        [(name, texts) for name, texts in document["different"]],
    )


COLUMNS = ("compared", "items", "answered by all", "with differences", "seconds")


def table(records: Iterable[Record]) -> str:
    """A table of several comparisons, a line each."""
    rows = [COLUMNS]
    for r in records:
        answers = r.counts.get("answers", Counter())
        named = " ".join(value for value in r.what.values() if value)
        shown = f"{answers['by all']}" if answers else "-"
        rows.append((named, str(r.done), shown, str(len(r.different)), f"{r.seconds:.0f}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows)
    return "\n".join("  ".join(cells) for cells in lines)


def run_items(
    record: Record, count: int, step: Callable[[int, Record], None], path: Path | None, until: float | None = None
) -> None:
    """Does the items that are left, or what the time allows; Ctrl-C ends it with what has been done."""
    begun = saved = time.monotonic()
    before = record.seconds
    try:
        while record.done < count and (until is None or time.monotonic() < until):
            step(record.done, record)
            record.done += 1
            record.seconds = before + time.monotonic() - begun
            if path is not None and time.monotonic() - saved > PAUSE:
                record.save(path)
                saved = time.monotonic()
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
    if path is not None:
        record.save(path)
