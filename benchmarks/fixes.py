"""Do the fixes that findings name mend the bugs? Every twin of ``tests/simt/corpus``, before and after.

    python -m benchmarks.fixes [--only TEXT,…] [--timeout SECONDS] [-j N] [--all]

The edits that the first bug of a twin names are made, and the edited module is checked:

* ``mended``: it gets the answer of the module that has no bug;
* ``gone``: the bug is gone, and another one is found, or not all is decided;
* ``stays``: a finding of the same code stands at one of the same lines, or the edited text is no module;
* ``told``: the fix is a sentence, since it is no instruction to insert (a count, a size, an order of operations).

Prints a row for each twin that is neither mended nor told (``--all``: for each), and the counts. Exit status 1 if a fix
helps nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.modules import Case, cases
from mcheck.base.source_files import SourceText
from mcheck.findings.finding import Finding
from mcheck.findings.fix_words import text_of
from mcheck.findings.repair import apply_edits, make_edits
from mcheck.ptx import check
from mcheck.report.bugs import collect_bugs

HELPLESS = "stays"


@dataclass(frozen=True, slots=True)
class Tried:
    """A twin, the code of its first bug, what became of that, and the fix in words."""

    label: str
    code: str
    outcome: str
    fix: str


def try_fix(case: Case, timeout: float) -> Tried:
    """What the fix of the first bug of a twin does."""
    text = case.text()
    found = _ask(text, case, timeout)
    bugs = collect_bugs(found.findings, SourceText(found.source, found.program))
    if not bugs:
        return Tried(case.label, "-", "none found", "")
    first = bugs[0].finding
    lines = text.split("\n")
    edits = make_edits(first.fixes, lines)
    words = text_of(first.fixes)
    if not edits:
        return Tried(case.label, first.code, "told", words)
    after = _ask("\n".join(apply_edits(lines, edits)), case, timeout)
    shift = sorted(edit.line for edit in edits if edit.text.count("\n"))
    before = {line + sum(at <= line for at in shift) for line in _lines(first)} | set(_lines(first))
    if after.verdict == "error" or any(f.code == first.code and before & set(_lines(f)) for f in after.findings):
        return Tried(case.label, first.code, HELPLESS, words)
    clean = next(other for other in cases() if other.path == case.path and not other.edits)
    more = _codes(after) and _codes(after) - _codes(_ask(clean.text(), clean, timeout))  # it may have some for review
    whole = after.verdict in clean.verdicts and not more
    return Tried(case.label, first.code, "mended" if whole else "gone", words)


def _ask(text: str, case: Case, timeout: float) -> Any:
    return check(text, case.launch(), cpu_timeout=timeout)


def _lines(finding: Finding) -> Sequence[int]:
    return [access.span.line for access in finding.accesses if access.span is not None]


def _codes(found: Any) -> set[str]:
    return {finding.code for finding in found.findings}


def main() -> int:
    """Prints the table and the counts; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of names, separated by commas")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds of the processor for an answer")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="a row for each twin")
    given = parser.parse_args()
    parts = [part for part in given.only.split(",") if part]
    twins = [case for case in cases() if case.edits and (not parts or any(part in case.label for part in parts))]
    counts: Counter[str] = Counter()
    with ProcessPoolExecutor(given.jobs) as pool:
        for tried in pool.map(partial(try_fix, timeout=given.timeout), twins):
            counts[tried.outcome] += 1
            if given.all or tried.outcome not in ("mended", "told"):
                print(f"{tried.label:<60} {tried.code:<8} {tried.outcome:<10} {tried.fix}", flush=True)
    print(f"{len(twins)} twins: {', '.join(f'{n} {outcome}' for outcome, n in counts.most_common())}")
    return 1 if counts[HELPLESS] else 0


if __name__ == "__main__":
    sys.exit(main())
