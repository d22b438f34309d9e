"""The modules of ``tests/simt/corpus`` and their twins, each checked: what is found, at which line, how fast.

    python -m benchmarks.modules [--only TEXT,…] [--timeout SECONDS] [-j N] [--wrong]
    python -m benchmarks.modules --against PATH [--twins] [--repeat N] [--json FILE] [--only TEXT,…] …

A row per module and per twin. A module is correct: an answer without an error is wanted, and its TOML says which. A
twin is a module with one bug, made by an edit of its text: a finding of its kind (severity error or review) at one of
its lines is wanted. Seconds are of the processor. Exit status 1 if a row is not as expected.

``--against`` compares with another checkout (``git worktree add PATH COMMIT``) instead: verdicts, what holds for the
whole launch, and the seconds and MiB beside those of before, for the modules of the corpus, those of
``benchmarks/modules``, and the launches of ``tests/simt/launch`` (``launch/…``); with ``--twins`` for those that have a
bug, too. ``--json`` writes the rows for programs. Exit status 1 if a launch whose CTAs keep apart takes more than
1.5 times what it took.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.checkouts import Question, compare_all
from benchmarks.launch_corpus import read_answers
from benchmarks.processes import spent

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "simt" / "corpus"
PIPES = Path(__file__).resolve().parent / "modules"
HEAD = f"{'module and twin':<66} {'expected':<16} {'verdict':<8} {'found':<24} {'line':<4} {'seconds':>7}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A pattern, which of the lines with it (1 the first, -1 the last, 0 all of them), and what comes in its place."""

    pattern: str
    which: int
    replacement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A module (no ``edits``) or a twin; ``kinds`` and ``at`` say what has to be found, ``verdicts`` what is right."""

    path: Path
    name: str
    edits: tuple[Edit, ...] = ()
    kinds: frozenset[str] = frozenset()
    at: tuple[str, ...] = ()
    verdicts: frozenset[str] = frozenset()

    @property
    def label(self) -> str:
        """``cuda/ring_bulk`` or ``cuda/ring_bulk no-wait``."""
        return f"{self.path.parent.name}/{self.path.stem}" + (f" {self.name}" if self.name else "")

    def text(self) -> str:
        """The module, edited."""
        return edited(self.path.read_text(encoding="utf-8"), self.edits)

    def lines(self) -> frozenset[int]:
        """The lines of the edited module of which a finding should name one."""
        patterns = [re.compile(pattern) for pattern in self.at]
        lines = enumerate(self.text().splitlines(), 1)
        return frozenset(n for n, line in lines if any(pattern.search(line) for pattern in patterns))

    def launch(self) -> dict[str, Any]:
        """The module's launch, in the form of a launch file."""
        found: dict[str, Any] = json.loads(self.path.with_suffix(".json").read_text(encoding="utf-8"))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was found: ``line`` is None where none is expected."""

    case: Case
    verdict: str
    found: str
    ok: bool
    line: bool | None
    seconds: float


def edited(text: str, edits: Sequence[Edit]) -> str:
    """The text after ``edits``, in order; the number of its lines stays. ``ValueError`` if one does not apply."""
    lines = text.splitlines()
    for edit in edits:
        pattern = re.compile(edit.pattern)
        matching = [i for i, line in enumerate(lines) if pattern.search(line)]
        if not matching or abs(edit.which) > len(matching):
            raise ValueError(f"{len(matching)} lines have {edit.pattern!r}, number {edit.which} is asked for")
        chosen = matching if edit.which == 0 else [matching[edit.which - (edit.which > 0)]]
        for i in chosen:
            lines[i] = pattern.sub(edit.replacement, lines[i], count=1)
    return "\n".join(lines) + "\n"


def cases(folder: Path = FOLDER) -> Iterator[Case]:
    """Every module, each before its twins."""
    for path in sorted(folder.glob("*/*.toml")):
        entry = tomllib.loads(path.read_text(encoding="utf-8"))
        module = path.with_suffix(".ptx")
        yield Case(path=module, name="", verdicts=frozenset(entry.get("verdict", "proved").split("|")))
        for twin in entry.get("twin", ()):
            edits = tuple(
                Edit(pattern=pattern, which=0 if which == "all" else which, replacement=replacement)
                for pattern, which, replacement in twin["edit"]
            )
            kinds = frozenset(twin["kind"].split("|"))
            yield Case(path=module, name=twin["name"], edits=edits, kinds=kinds, at=tuple(twin["at"]))


def questions(*, twins: bool) -> Iterator[Question]:
    """What two checkouts are asked about: every module that has a launch."""
    for case in cases():
        if twins or not case.edits:
            launch = case.path.with_suffix(".json").read_text(encoding="utf-8")
            yield Question(label=case.label, module=case.text(), launch=launch)
    for path in sorted(PIPES.glob("*.ptx")):
        launch = path.with_suffix(".json").read_text(encoding="utf-8")
        yield Question(label=f"modules/{path.stem}", module=path.read_text(encoding="utf-8"), launch=launch)
    for answer in read_answers():
        if twins or not answer.twin:
            module, launch = (path.read_text(encoding="utf-8") for path in (answer.module, answer.launch))
            yield Question(label=f"launch/{answer.label}", module=module, launch=launch)


def check(case: Case, timeout: float | None) -> Checked:
    """The answer about a case, judged; without a limit of time it is found in this process."""
    from mcheck.ptx import check as ask

    started = spent()
    try:
        answer = ask(case.text(), case.launch(), timeout=timeout)
    except Exception as error:  # noqa: BLE001 - a crash on one module must not take the table with it
        seconds = spent() - started
        found = f"{type(error).__name__}: {error}"
        return Checked(case=case, verdict="error", found=found, ok=False, line=None, seconds=seconds)
    return judge(case, answer, spent() - started)


def guarded(case: Case, timeout: float) -> Checked:
    """``check``, but an answer that does not keep its time is an error and not waited for."""
    signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, 2 * timeout + 5)
    try:
        return check(case, timeout)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _late(*_: object) -> None:
    raise TimeoutError("no answer in twice the time")


def judge(case: Case, answer: Any, seconds: float) -> Checked:
    """Whether the findings are those expected; an answer that is not certain is no clean one."""
    findings = [f for f in answer.findings if f.severity == "error" or (case.kinds and f.severity == "review")]
    found = "|".join(sorted({f"{f.kind} {f.code}" for f in findings}))
    if not case.kinds:
        ok = not findings and answer.verdict in case.verdicts
        reason = getattr(answer, "reason", None) or ""
        return Checked(case=case, verdict=answer.verdict, found=found or reason, ok=ok, line=None, seconds=seconds)
    wanted = [f for f in findings if f.kind in case.kinds]
    lines = case.lines()
    placed = any(a.span is not None and a.span.line in lines for f in wanted for a in f.accesses)
    return Checked(case=case, verdict=answer.verdict, found=found, ok=placed, line=placed, seconds=seconds)


def row(checked: Checked) -> str:
    """A row of the table."""
    case = checked.case
    expected = "|".join(sorted(case.kinds)) or "|".join(sorted(case.verdicts))
    line = "-" if checked.line is None else "yes" if checked.line else "no"
    mark = "" if checked.ok else "  WRONG"
    end = f"{line:<4} {checked.seconds:>7.2f}{mark}"
    return f"{case.label:<66} {expected:<16} {checked.verdict:<8} {checked.found:<24} {end}"


def _named(label: str, parts: Sequence[str]) -> bool:
    return not parts or any(part in label for part in parts)


def main() -> int:
    """Prints the table and the totals; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of names, separated by commas")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds per module")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--wrong", action="store_true", help="print only rows that are not as expected")
    parser.add_argument("--against", type=Path, metavar="PATH", help="compare with the mcheck of this checkout")
    parser.add_argument("--twins", action="store_true", help="with --against: modules with a bug, too")
    parser.add_argument("--repeat", type=int, default=1, help="with --against: runs of each, the least seconds count")
    parser.add_argument("--json", type=Path, metavar="FILE", help="with --against: write the rows here as well")
    options = parser.parse_args()
    parts = [part for part in options.only.split(",") if part]
    if options.against is not None:
        asked = [each for each in questions(twins=options.twins) if _named(each.label, parts)]
        settings = {"timeout": options.timeout, "jobs": options.jobs, "repeat": options.repeat, "report": options.json}
        return compare_all(asked, options.against, **settings)
    chosen = [case for case in cases() if _named(case.label, parts)]
    if not chosen:
        print("no module has such a name")
        return 2
    print(HEAD)
    wrong = 0
    started = time.perf_counter()
    with ProcessPoolExecutor(options.jobs) as pool:
        for checked in pool.map(partial(guarded, timeout=options.timeout), chosen):
            wrong += not checked.ok
            if not options.wrong or not checked.ok:
                print(row(checked), flush=True)
    twins = sum(bool(case.edits) for case in chosen)
    total = time.perf_counter() - started
    print(
        f"{len(chosen) - twins} modules, {twins} twins: {len(chosen) - wrong} as expected, {wrong} not; {total:.1f} s"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
