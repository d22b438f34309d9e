"""Do the fixes that findings name mend the bugs? Every twin of ``tests/simt/corpus``, before and after.

    python -m benchmarks.fixes [--only TEXT,…] [--timeout SECONDS] [-j N] [--all]

The edits that the first bug of a twin names are made, and the edited module is checked:

* ``mended``: it gets the answer of the module that has no bug;
* ``gone``: the bug is gone, and another one is found, or not all is decided;
* ``stays``: a finding of the same code stands at one of the same lines, or the edited text is no module;
* ``told``: the fix is a sentence, since it is no instruction to insert (a count, a size, an order of operations).

Where a report shows several bugs whose fixes are all edits, all of these are made if those of the first bug do not do:
threads that lack three fences lack each of them.

Prints a row for each twin that is neither mended nor told (``--all``: for each), and the counts; then, of the twins
that leave a synchronising instruction out, how many fixes name one of its kind (a wait where a branch back to it is
left out) and a line near its place. Exit status 1 if a fix helps nothing.
"""

from __future__ import annotations

import argparse
import re
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
NEAR = 12
"""The lines between an instruction that is left out and a place that names it, with the comments of compilers."""
KINDS = (
    (r"^bar(rier)?\.(?!cluster)", r"\bbar\.|barrier"),
    (r"^barrier\.cluster", r"barrier\.cluster"),
    (r"^fence\.proxy", r"fence\.proxy"),
    (r"^(wgmma\.)?fence\b", r"fence"),
    (r"commit", r"commit"),
    (r"wait_group|wait_all", r"wait_group|wait_all"),
    (r"^tcgen05\.wait", r"tcgen05\.wait"),
    (r"^mbarrier\.\w+_wait|^bra\b", r"_wait\b|[Ww]ait for"),
    (r"^mbarrier\.arrive", r"arriv"),
)
"""Of the instructions that twins leave out, and of the words that name one of their kind, patterns."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A twin, the code of its first bug, what became of that, and the fix in words."""

    label: str
    code: str
    outcome: str
    fix: str
    named: bool | None = None
    """Whether the fix names what is left out; ``None`` if that is no instruction of ``KINDS``."""


def names_what_is_left_out(case: Case, words: str) -> bool | None:
    """Whether words name an instruction of the kind of one that a twin leaves out, and a line near it."""
    pairs = zip(case.path.read_text(encoding="utf-8").splitlines(), case.text().splitlines(), strict=True)
    left_out = [(n, one.strip()) for n, (one, other) in enumerate(pairs, 1) if one != other and _is_nothing(other)]
    kinds = [(n, kind) for n, code in left_out if (kind := _kind_of(code)) is not None]
    if not kinds:
        return None
    named = [
        int(number)
        for lines in re.findall(r"\blines? (\d+(?:(?:, | and )\d+)*)", words)
        for number in re.findall(r"\d+", lines)
    ]
    return any(re.search(kind, words) and any(abs(n - line) <= NEAR for line in named) for n, kind in kinds)


def _is_nothing(line: str) -> bool:
    return not line.strip() or line.strip().startswith("//")


def _kind_of(code: str) -> str | None:
    """The pattern of the words for the kind of an instruction."""
    bare = re.sub(r"^@!?%?\w+\s+", "", code)
    return next((words for pattern, words in KINDS if re.search(pattern, bare)), None)


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
    tried = partial(Tried, case.label, first.code, fix=words, named=names_what_is_left_out(case, words))
    if not edits:
        return tried("told")
    after = _ask("\n".join(apply_edits(lines, edits)), case, timeout)
    others = [make_edits(bug.finding.fixes, lines) for bug in bugs[1:]]
    if after.findings and others and all(others):
        edits = tuple(dict.fromkeys((*edits, *(edit for more in others for edit in more))))
        after = _ask("\n".join(apply_edits(lines, edits)), case, timeout)
    shift = sorted(edit.line for edit in edits if edit.text.count("\n"))
    before = {line + sum(at <= line for at in shift) for line in _lines(first)} | set(_lines(first))
    if after.verdict == "error" or any(f.code == first.code and before & set(_lines(f)) for f in after.findings):
        return tried(HELPLESS)
    clean = next(other for other in cases() if other.path == case.path and not other.edits)
    more = _codes(after) and _codes(after) - _codes(_ask(clean.text(), clean, timeout))  # it may have some for review
    whole = after.verdict in clean.verdicts and not more
    return tried("mended" if whole else "gone")


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
    named: Counter[bool | None] = Counter()
    with ProcessPoolExecutor(given.jobs) as pool:
        for tried in pool.map(partial(try_fix, timeout=given.timeout), twins):
            counts[tried.outcome] += 1
            named[tried.named] += 1
            if given.all or tried.outcome not in ("mended", "told"):
                print(f"{tried.label:<60} {tried.code:<8} {tried.outcome:<10} {tried.fix}", flush=True)
    print(f"{len(twins)} twins: {', '.join(f'{n} {outcome}' for outcome, n in counts.most_common())}")
    print(f"{named[True]} of {named[True] + named[False]} fixes name what is left out, and where")
    return 1 if counts[HELPLESS] else 0


if __name__ == "__main__":
    sys.exit(main())
