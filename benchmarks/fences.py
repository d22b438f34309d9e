"""Repairs of the bugs of ``litmus/kernels`` by ``mcheck fences``, compared with their fixed twins.

``python -m benchmarks.fences [--modules] [NAME...]`` prints a row for each bug: whether the cheapest repair is the
twin's own (``twin``), another one (``also`` if the twin's is among the alternatives), or none; its kind; the lines that
it changes and those that the twin changes; what it adds to the cost of the synchronisation, and what the twin adds,
which is the price of a changed size where the twin reads, writes or copies other words; the changed programs that were
checked; seconds of the processor. With ``--edits`` the changed lines follow. With ``--modules`` the bugs are those that
``tests/simt/corpus`` plants in modules that are proved, and the twin is the module itself.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from time import process_time

from benchmarks.modules import cases
from mcheck.checking.fences.computation import computation_of, describe_changes
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


def computes_otherwise(text: str, twin: str) -> bool:
    """Whether a thread of the twin reads, writes or copies other words."""
    before, after = computation_of(text, "bug"), computation_of(twin, "twin")
    return before is not None and after is not None and bool(describe_changes(before, after))


def added_cost(before: str, after: str, costs: Costs) -> float:
    """What the lines of a module that change add to its cost."""

    def of(line: str | None) -> float:
        statements = [part.strip() for part in re.split(r"[;{}]", line or "")]
        return sum(costs.of(re.sub(r"^@!?\S+\s+", "", part)) for part in statements)

    return sum(of(change.new) - of(change.old) for change in changed_lines(before, after))


def module_row(label: str, found: Examined, whole: str, costs: Costs, seconds: float) -> str:
    """The row of a bug in a module."""
    if found.repairs is None:
        return f"open  {label}: {found.verdict}; {seconds:.1f} s"
    wanted, trials = added_cost(found.text, whole, costs), found.repairs.trials
    if not found.repairs.found:
        return f"none  {label}: cost {wanted:g}; {trials} checks, {seconds:.1f} s"
    first = found.repairs.found[0]
    added = added_cost(found.text, first.text, costs)
    verdict = "twin" if first.text.split() == whole.split() else "other"
    dearer = "" if added <= wanted else ", dearer"
    kind = " + ".join(dict.fromkeys(first.kind))
    return f"{verdict:5} {label}: {kind}; cost {added:g} of {wanted:g}{dearer}; {trials} checks, {seconds:.1f} s"


def row(bug: Path, found: Examined, costs: Costs, seconds: float) -> str:
    """The row of a bug."""
    text, twin = found.text, twin_of(bug).read_text(encoding="utf-8")
    before = cost_of_text(text, costs)
    wanted = cost_of_text(twin, costs) - before + (costs.edit["size"] if computes_otherwise(text, twin) else 0)
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


def examine_modules(names: tuple[str, ...], costs: Costs, limits: Limits) -> None:
    """Print the rows of the bugs in modules."""
    every = [*cases()]
    proved = {case.path for case in every if not case.edits and case.verdicts <= {"proved"}}
    for case in every:
        if case.edits and case.path in proved and case.label.startswith(names or ""):
            started = process_time()
            found = examine_text(str(case.path), case.text(), costs, limits)
            whole = case.path.read_text(encoding="utf-8")
            sys.stdout.write(module_row(case.label, found, whole, costs, process_time() - started) + "\n")
            sys.stdout.flush()


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="beginnings of the names of bugs")
    parser.add_argument("--modules", action="store_true", help="the bugs in modules")
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--seconds", type=float, default=60, help="of the processor, for each bug")
    parser.add_argument("--edits", action="store_true", help="print the changed lines of each repair")
    given = parser.parse_args()
    costs = read_costs()
    limits = Limits(timeout=given.seconds, processor_time=True, trials=given.trials)
    if given.modules:
        examine_modules(tuple(given.names), costs, limits)
        return 0
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
