"""Files with baselines: JSON with an entry on each line, so that they are read and merged like source code.

Paths are relative to the folder of the file, so that it can be committed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mcheck.base.errors import InputError
from mcheck.base.files import read_text_file
from mcheck.base.records import dataclass
from mcheck.base.source_files import SourceText
from mcheck.checking.run.result import Result
from mcheck.findings.baseline import Baseline, KnownAccess, KnownFinding, compose_entries, missing_entries

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """A baseline with what a check found: ``added`` are entries that are new, ``gone`` those no longer found."""

    baseline: Baseline
    added: tuple[KnownFinding, ...]
    gone: tuple[KnownFinding, ...]


def relative_name(path: str, baseline: str) -> str:
    """The name of a checked file in a baseline."""
    return os.path.relpath(path, os.path.dirname(os.path.abspath(baseline))).replace(os.sep, "/")


def read_baseline(path: str) -> Baseline:
    """The baseline in a file; raises ``InputError``."""
    try:
        document = json.loads(read_text_file(path))
    except OSError as error:
        hint = f"--write-baseline {path} writes it" if isinstance(error, FileNotFoundError) else None
        raise InputError(f"cannot read {path}: {error.strerror or error}", hint=hint) from None
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON: {error}") from None
    try:
        if document["schema"] != SCHEMA:
            raise InputError(f"{path} has schema {document['schema']!r}; this version reads {SCHEMA}")
        return Baseline(tuple(_read_entry(entry) for entry in document["baseline"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is not a baseline of mcheck: {error!r}") from None


def _read_entry(entry: Mapping[str, Any]) -> KnownFinding:
    accesses = tuple(KnownAccess(str(a["instruction"]), str(a["object"]), str(a["source"])) for a in entry["accesses"])
    return KnownFinding(
        file=str(entry["file"]), code=str(entry["code"]), accesses=accesses,
        message=str(entry.get("message", "")), places=int(entry["places"]),
    )  # fmt: skip


def format_baseline(baseline: Baseline) -> str:
    """The text of the file."""
    entries = sorted(baseline.entries, key=lambda e: (e.file, e.code, [asdict(a) for a in e.accesses].__repr__()))
    rows = ",\n".join(json.dumps({k: v for k, v in asdict(e).items() if v != ""}, ensure_ascii=False) for e in entries)
    return f'{{"schema": {SCHEMA}, "tool": "mcheck", "baseline": [\n{rows}\n]}}\n'


def update_baseline(before: Baseline, results: Sequence[Result], path: str) -> Update:
    """The baseline at ``path`` with the findings of these results. Entries of a file go only if everything in it was
    found, or if it is no longer there.
    """
    folder = os.path.dirname(os.path.abspath(path))
    found = tuple(entry for result in results for entry in _entries(result, path))
    gone = list_gone(before, results, path)
    lost = tuple(e for e in before.entries if e not in gone and not os.path.exists(os.path.join(folder, e.file)))
    now = {entry.identity for entry in found}
    dropped = {*gone, *lost}
    kept = tuple(e for e in before.entries if e not in dropped and e.identity not in now)
    return Update(baseline=Baseline((*kept, *found)), added=missing_entries(found, before.entries), gone=(*gone, *lost))


def list_gone(before: Baseline, results: Iterable[Result], path: str) -> tuple[KnownFinding, ...]:
    """The entries that are no longer found, of files in which everything was found."""
    results = [result for result in results if result.all_found]
    files = {relative_name(result.path, path) for result in results}
    found = [entry for result in results for entry in _entries(result, path)]
    return missing_entries((e for e in before.entries if e.file in files), found)


def _entries(result: Result, path: str) -> Iterator[KnownFinding]:
    """The entries for what was found in a file and is neither suppressed nor expected there."""
    if result.expected_kinds and result.status == "ok":
        return
    texts = SourceText(result.source, result.program)
    yield from compose_entries((*result.findings, *(result.known or ())), relative_name(result.path, path), texts)
