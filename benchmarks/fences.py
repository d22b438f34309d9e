"""Repairs of the bugs of ``litmus/kernels`` by ``mcheck fences``, compared with their fixed twins.

``python -m benchmarks.fences [NAME...]`` prints a row for each bug: whether the cheapest repair is the twin's own
(``twin``), another one (``also`` if the twin's is among the alternatives), or none; its kind; the lines that it changes
and those that the twin changes; what it adds to the cost of the synchronisation, and what the twin adds; the changed
programs that were checked; seconds of the processor. With ``--edits`` the changed lines follow.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from time import process_time

from mcheck.checking.fences.costs import Costs, cost_of_text, read_costs
from mcheck.checking.fences.edits import changed_lines
from mcheck.checking.fences.examination import TRIALS, Examined, Limits, examine_text

KERNELS = Path(__file__).parents[1] / "litmus" / "kernels"
_COMMENT = re.compile(r"^(?:PTX|\"|expect|\s*//).*$", re.MULTILINE)


def bugs() -> list[Path]:
    """The bugs that have a fixed twin."""
    return sorted(path for path in KERNELS.glob("*.litmus") if twin_of(path).exists())


def twin_of(bug: Path) -> Path:
    """The fixed program."""
    return bug.with_name(f"{bug.stem}-fixed.litmus")


def code_lines(text: str) -> list[str]:
    """The lines of a program without comments, names, expectations and indentation."""
    return [line.strip() for line in _COMMENT.sub("", text).splitlines() if line.strip()]


def row(bug: Path, found: Examined, costs: Costs, seconds: float) -> str:
    """The row of a bug."""
    text, twin = found.text, twin_of(bug).read_text(encoding="utf-8")
    before = cost_of_text(text, costs)
    wanted = cost_of_text(twin, costs) - before
    changes = len(list(changed_lines("\n".join(code_lines(text)), "\n".join(code_lines(twin)))))
    repairs = found.repairs.found if found.repairs is not None else ()
    trials = found.repairs.trials if found.repairs is not None else 0
    if not repairs:
        return f"none  {bug.stem}: twin changes {changes} lines at cost {wanted:g}; {trials} checks, {seconds:.1f} s"
    costs_of = [cost_of_text(each.text, costs) - before for each in repairs]
    same = [code_lines(each.text) == code_lines(twin) for each in repairs]
    verdict = "twin" if same[0] else "also" if any(same) else "other"
    dearer = "" if min(costs_of) <= wanted else ", dearer"
    lines = len(list(changed_lines(text, repairs[0].text)))
    kind = " + ".join(repairs[0].kind)
    return (
        f"{verdict:5} {bug.stem}: {kind}; lines {lines} of {changes}, cost {costs_of[0]:g} of {wanted:g}{dearer}; "
        f"{len(repairs[0].steps)} edits, {trials} checks, {seconds:.1f} s"
    )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="beginnings of the names of bugs")
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--seconds", type=float, default=60, help="of the processor, for each bug")
    parser.add_argument("--edits", action="store_true", help="print the changed lines of each repair")
    given = parser.parse_args()
    costs = read_costs()
    limits = Limits(timeout=given.seconds, processor_time=True, trials=given.trials)
    for bug in bugs():
        if given.names and not bug.stem.startswith(tuple(given.names)):
            continue
        started = process_time()
        found = examine_text(str(bug), bug.read_text(encoding="utf-8"), costs, limits)
        sys.stdout.write(row(bug, found, costs, process_time() - started) + "\n")
        for repair in found.repairs.found if given.edits and found.repairs is not None else ():
            sys.stdout.write(f"        {' + '.join(repair.kind)}, cost {repair.cost:g} {' '.join(repair.reviews)}\n")
            for change in changed_lines(found.text, repair.text):
                sys.stdout.write(f"          {change.line}: {change.old or ''} => {change.new}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
