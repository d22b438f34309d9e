"""Adds what the runner wrote, and the texts of the bundles that it ran, to the file of results that is committed.

    python -m hardware.litmus.merge SEEN.jsonl... --bundle FOLDER... [--out FILE]

The texts of the tests make the file complete: what was run can be held against a model that nobody had thought of then.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterable
from pathlib import Path

from mcheck.report.hardware_results import observation_file, read_records


def merge(paths: Iterable[Path], bundles: Iterable[Path], target: Path) -> None:
    """Adds the lines of several files and the texts of their tests to a compressed one, which need not be there yet."""
    rows = [row for path in (target, *paths) if path.exists() for row in read_records(path)]
    wanting = {row["hash"] for row in rows if "hash" in row} - {row["hash"] for row in rows if "text" in row}
    for bundle in bundles:
        for test in json.loads((bundle / "plan.json").read_text()):
            if test["hash"] in wanting:
                wanting.discard(test["hash"])
                rows.append({"name": test["name"], "hash": test["hash"], "text": test["text"]})
    lines = [json.dumps(row, separators=(",", ":")) for row in rows]
    # No time of writing in the file: the same lines give the same bytes.
    with target.open("wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as file:
        file.write(("\n".join(lines) + "\n").encode())


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seen", nargs="+", type=Path)
    parser.add_argument("--bundle", action="append", type=Path, default=[])
    parser.add_argument("--out", type=Path, default=observation_file())
    given = parser.parse_args()
    merge(given.seen, given.bundle, given.out)


if __name__ == "__main__":
    main()
