"""Scalable litmus families against herd7's figures: the same states, and how much faster.

    python -m benchmarks.families [--families FILE.py] [--only NAME,…] [--model NAME] [--limit SECONDS] [--beyond N]

Runs every row of the tables ``HERD7`` (all states) and ``HERD7_VERDICT`` (the verdict alone) of the file with the
families, by default the one beside the checkout, and RING 8; with ``--beyond`` also the next N sizes behind the largest
of each family in each table. Each row is a process of its own, with its peak memory and the seconds of the processor
from its start to its end (what Python takes to start included), which is what herd7's clock tells too. Exit status 1 if
a target is missed:

* all states: as many as herd7 finds; ten times as fast at the largest size it finishes;
* the verdict alone: at least as fast wherever herd7 takes more than 0.3 s;
* rows that herd7 does not finish, RING 8, and sizes beyond the tables: under 10 s;
* everywhere: the verdict that the family is known for, under 1 GiB.
"""

from __future__ import annotations

import argparse
import compileall
import importlib.util
import json
import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.processes import Finished, run_process

ROOT = Path(__file__).resolve().parent.parent
FAMILIES = ROOT.parent / "shared" / "families.py"

UNFINISHED_LIMIT = 10.0
NEGLIGIBLE = 0.3
FACTOR = 10.0
MEMORY_LIMIT = 1 << 30
FORBIDDEN = {"SBF", "CORR2", "WR", "RING"}
"""The families whose condition no execution meets."""


@dataclass(frozen=True, slots=True)
class Row:
    """One test and herd7's figures for it (``None``: not done in a minute, or never ``tried``)."""

    family: str
    n: int
    verdict_only: bool
    states: int | None = None
    seconds: float | None = None
    largest: bool = False
    tried: bool = True


RING = Row("RING", 8, True, tried=False)

State = frozenset[tuple[str, int]]
"""Values by the names that the condition has for them."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What our process said and cost; ``verdict`` says so where there is none. ``found`` are the states themselves."""

    verdict: str
    states: int
    seconds: float
    memory: int
    wall: float = 0.0
    found: frozenset[State] = frozenset()


def rows(families: ModuleType, beyond: int = 0) -> Iterator[Row]:
    """All rows, in the order of the file, and so many sizes beyond each table's."""
    for family, sizes in families.HERD7.items():
        finished = [n for n, figure in sizes.items() if figure is not None]
        for n, figure in sizes.items():
            states, seconds = (figure[1], figure[2]) if figure is not None else (None, None)
            yield Row(family, n, False, states, seconds, n == max(finished))
    for family, sizes in families.HERD7_VERDICT.items():
        for n, figure in sizes.items():
            yield Row(family, n, True, None, figure[1] if figure is not None else None)
    yield RING
    largest = {(family, False): max(sizes) for family, sizes in families.HERD7.items()}
    largest |= {(family, True): max(sizes) for family, sizes in families.HERD7_VERDICT.items()}
    largest[RING.family, True] = RING.n
    for (family, verdict_only), n in largest.items():
        yield from (Row(family, n + k, verdict_only, tried=False) for k in range(1, beyond + 1))


def ask_mcheck(text: str, limit: float, *options: str) -> tuple[Finished, dict[str, Any] | None]:
    """``mcheck run`` of a test in a process of its own, and what its report says of it; none if there is none."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "test.litmus")
        path.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "mcheck", "run", str(path), "--format", "json", "--jobs", "1", *options]
        done = run_process(command, limit, folder=ROOT, errors=None)
    return done, None if done.stopped or not done.output else json.loads(done.output)["tests"][0]


def measure(text: str, row: Row, model: str | None, limit: float) -> Measured:
    """Runs one test in a process of its own."""
    verdict_only = ["--verdict-only"] if row.verdict_only else []
    done, test = ask_mcheck(text, limit, *verdict_only, *(["--model", model] if model else []))
    if test is None:
        why = "time-out" if done.stopped else f"exit status {done.status}"
        return Measured(why, 0, done.processor, done.memory, wall=done.wall)
    states = frozenset(frozenset(state.items()) for state in test["states"])
    return Measured(test["verdict"], len(states), done.processor, done.memory, wall=done.wall, found=states)


def apart(call: Callable[..., Measured], *arguments: object) -> Measured:
    """A call in a process of its own: what this one has read would count as the peak memory of its next child."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other:
        return other.submit(call, *arguments).result()


def missed(row: Row, ours: Measured) -> list[str]:
    """The targets that the row misses, in words."""
    wrong = []
    known = "fail" if row.family in FORBIDDEN else "pass"
    if ours.verdict != known:
        wrong.append(f"verdict {ours.verdict}, not {known}")
    if row.states is not None and ours.states != row.states:
        wrong.append("states differ")
    if row.seconds is None:
        if ours.seconds >= UNFINISHED_LIMIT:
            wrong.append(f"not under {UNFINISHED_LIMIT:g} s")
    elif row.verdict_only:
        if row.seconds > NEGLIGIBLE and ours.seconds > row.seconds:
            wrong.append("slower than herd7")
    elif row.largest and ours.seconds * FACTOR > row.seconds:
        wrong.append(f"not {FACTOR:g} times as fast")
    if ours.memory >= MEMORY_LIMIT:
        wrong.append("1 GiB or more")
    return wrong


HEAD = (
    f"{'family':<8}{'n':>3}  {'mode':<8}{'states':>8}{'herd7':>8}  {'equal':<6}"
    f"{'seconds':>9}{'herd7':>9}{'ratio':>8}{'MiB':>7}"
)


def line(row: Row, ours: Measured) -> str:
    """A row of the table."""
    states = f"{ours.states}" if not row.verdict_only else "-"
    theirs = f"{row.states}" if row.states is not None else "-"
    equal = "-" if row.states is None else "yes" if row.states == ours.states else "NO"
    herd = f"{row.seconds:.2f}" if row.seconds is not None else "> 60" if row.tried else "-"
    ratio = f"{row.seconds / ours.seconds:.1f}x" if row.seconds is not None else "-"
    mode = "verdict" if row.verdict_only else "states"
    mebi = ours.memory >> 20
    head = f"{row.family:<8}{row.n:>3}  {mode:<8}{states:>8}{theirs:>8}  {equal:<6}"
    return f"{head}{ours.seconds:>9.2f}{herd:>9}{ratio:>8}{mebi:>7}"


def load(path: Path) -> ModuleType:
    """The file with the families and herd7's figures."""
    spec = importlib.util.spec_from_file_location("families_and_figures", path)
    if spec is None or spec.loader is None:
        sys.exit(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> int:
    """Prints the table; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", type=Path, default=FAMILIES, metavar="FILE.py")
    parser.add_argument("--only", default="", metavar="NAME,…", help="these families alone")
    parser.add_argument("--model", help="a model other than the default")
    parser.add_argument(
        "--limit", type=float, default=120.0, metavar="SECONDS", help="stop a row that takes longer by the clock"
    )
    parser.add_argument("--beyond", type=int, default=0, metavar="N", help="also the next N sizes of each family")
    options = parser.parse_args()
    compileall.compile_dir(ROOT / "mcheck", quiet=2)  # as its installation does, whatever Python is told of bytecode
    if not options.families.is_file():
        print(f"nothing to compare with: {options.families} is absent (--families FILE.py names another)")
        return 0
    families = load(options.families)
    only = {name for name in options.only.split(",") if name}
    if unknown := only - set(families.FAMILIES):
        parser.error(f"no such family: {', '.join(sorted(unknown))}")
    print(HEAD)
    total = bad = peak = 0
    for row in rows(families, options.beyond):
        if only and row.family not in only:
            continue
        ours = apart(measure, families.test(row.family, row.n), row, options.model, options.limit)
        wrong = missed(row, ours)
        total, bad, peak = total + 1, bad + bool(wrong), max(peak, ours.memory)
        print(line(row, ours) + (f"  MISSED: {', '.join(wrong)}" if wrong else ""), flush=True)
    print(f"{total} rows: {total - bad} meet their targets, {bad} do not; peak memory {peak >> 20} MiB")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
