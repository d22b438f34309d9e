"""mcheck of this checkout beside that of another one: their answers about modules, and seconds of the processor.

``python -m benchmarks.modules --against PATH`` runs this. The same Python runs both, ``mcheck check`` in a process of
its own for each answer, so that the start-up of each counts, and one right after the other, so that both find the
machine alike busy. There is no ratio where one of them finds no answer, or cannot read a later form of launch files.
"""

from __future__ import annotations

import compileall
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.processes import Finished, run_process

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = 1.5
"""How many times the seconds of before a launch whose CTAs keep apart may take."""
HEAD = (
    f"{'module':<52} {'before':<9} {'seconds':>7} {'MiB':>5}  {'now':<9} {'seconds':>7} {'MiB':>5} {'ratio':>6}"
    "  the answer now"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A module and its launch, as texts."""

    label: str
    module: str
    launch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What one checkout says: ``covers`` is the part of the grid, None where it does not say; ``seconds`` of the
    processor, the least; ``wall`` those by the clock; ``memory`` the MiB that it had at once.
    """

    verdict: str
    codes: tuple[str, ...] = ()
    reason: str = ""
    covers: Mapping[str, int] | None = None
    seconds: float = 0.0
    wall: float = 0.0
    memory: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The answers of both about a module."""

    label: str
    before: Answered
    now: Answered
    ratio: float | None = None

    @property
    def keep_apart(self) -> bool:
        """Whether the launch is proved from its clusters one by one, which is all that was asked before."""
        covers = self.now.covers
        whole = covers is not None and covers["clusters"] == covers["of"] and covers["together"] == 1
        return self.now.verdict == "proved" and whole


def compare(question: Question, other: Path, timeout: float, repeat: int) -> Compared:
    """Both answers, in turn, ``repeat`` times."""
    ran: dict[Path, list[Answered]] = {other: [], ROOT: []}
    with tempfile.TemporaryDirectory() as folder:
        module, launch = Path(folder) / "module.ptx", Path(folder) / "module.json"
        module.write_text(question.module, encoding="utf-8")
        launch.write_text(question.launch, encoding="utf-8")
        for _ in range(repeat):
            for checkout, answers in ran.items():
                answers.append(ask(checkout, module, timeout))
    before, now = (min(answers, key=lambda answer: answer.seconds) for answers in ran.values())
    answered = not {before.verdict, now.verdict} & {"error", "unknown"}
    ratio = round(now.seconds / before.seconds, 3) if answered else None
    return Compared(label=question.label, before=before, now=now, ratio=ratio)


def ask(checkout: Path, module: Path, timeout: float, *, limit: str = "--timeout") -> Answered:
    """What ``mcheck check`` of a checkout says of a module with its launch beside it, within ``limit``."""
    command = [sys.executable, "-m", "mcheck", "check", str(module), "--format", "json", limit, str(timeout)]
    wait = 2 * timeout + 10 if limit == "--timeout" else None
    return read_answer(run_process(command, wait, folder=checkout, environment=environment_of(checkout)))


def read_answer(done: Finished) -> Answered:
    """The answer of a report in JSON; none if the process was stopped."""
    if done.stopped or not done.output.strip():
        why = "no report in twice the time"
        return Answered(verdict="unknown", reason=why, seconds=done.processor, wall=done.wall, memory=done.memory >> 20)
    result: dict[str, Any] = json.loads(done.output)["results"][0]
    errors = result.get("errors") or ()
    uncovered = [text for text in result["assumptions"] if text.startswith("not covered: ")]
    return Answered(
        verdict=result["verdict"],
        codes=tuple(sorted({found["code"] for found in result["findings"]})),
        reason=errors[0]["message"] if errors else uncovered[0].removeprefix("not covered: ") if uncovered else "",
        covers=result.get("covers"),
        seconds=done.processor,
        wall=done.wall,
        memory=done.memory >> 20,
    )


def environment_of(checkout: Path) -> dict[str, str]:
    """The environment in which this Python imports the mcheck of a checkout."""
    path = os.pathsep.join(filter(None, (str(checkout), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}


def prepare(checkout: Path) -> str | None:
    """Compiles a checkout's mcheck to bytecode, as its installation does; says why it cannot be run, if so."""
    compileall.compile_dir(checkout / "mcheck", quiet=2)
    command = [sys.executable, "-c", "import mcheck; print(mcheck.__file__)"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=checkout, env=environment_of(checkout)
    )
    found = Path(done.stdout.strip() or "/")
    if checkout.resolve() in found.resolve().parents:
        return None
    return f"{checkout}: Python imports {found}" if done.returncode == 0 else f"{checkout}: no mcheck there"


def row(compared: Compared) -> str:
    """A row of the table."""
    before, now = compared.before, compared.now
    ratio = "-" if compared.ratio is None else f"{compared.ratio:.2f}"
    said = [f"{now.covers['clusters']} of {now.covers['of']}"] if now.covers else []
    if now.covers and now.covers["together"] > 1:
        said.append(f"{now.covers['together']} together")
    said += now.codes or ([now.reason[:60]] if now.reason else [])
    took = "  ".join(f"{one.verdict:<9} {one.seconds:>7.2f} {one.memory:>5}" for one in (before, now))
    return f"{compared.label:<52} {took} {ratio:>6}  {', '.join(said)}"


def summary(rows: Sequence[Compared]) -> Iterator[str]:
    """The sums below the table."""
    verdicts = Counter((each.before.verdict, each.now.verdict) for each in rows)
    pairs = ", ".join(f"{before} -> {now}: {count}" for (before, now), count in sorted(verdicts.items()))
    yield f"{len(rows)} rows; {pairs}"
    for name, chosen in (
        ("keep apart", [each for each in rows if each.keep_apart]),
        ("others", [each for each in rows if not each.keep_apart]),
    ):
        both = [(each.ratio, each) for each in chosen if each.ratio is not None]
        if not both:
            yield f"{name}: {len(chosen)}, none with a ratio"
            continue
        before, now = (sum(getattr(each, side).seconds for _, each in both) for side in ("before", "now"))
        middle = statistics.median(ratio for ratio, _ in both)
        yield (
            f"{name}: {len(chosen)}, {len(both)} with a ratio: {before:.1f} s before, {now:.1f} s now; "
            f"median ratio {middle:.2f}, largest {max(ratio for ratio, _ in both):.2f}"
        )
    for each in slower(rows):
        yield f"more than {ALLOWED:g} times: {each.label} {each.before.seconds:.2f} s, now {each.now.seconds:.2f} s"


def slower(rows: Sequence[Compared]) -> list[Compared]:
    """The rows that keep apart and take more than they may, the largest ratio first."""
    found = [each for each in rows if each.keep_apart and each.ratio is not None and each.ratio > ALLOWED]
    return sorted(found, key=lambda each: -(each.ratio or 0))


def compare_all(
    questions: Sequence[Question], other: Path, *, timeout: float, jobs: int, repeat: int, report: Path | None
) -> int:
    """Prints the table; exit status 1 if a launch that keeps apart takes more than ``ALLOWED`` times as long.

    ``report`` gets the rows as JSON, after each row, so that a run that is stopped leaves what it has.
    """
    other = other.resolve()
    for problem in filter(None, map(prepare, (other, ROOT))):
        print(problem, file=sys.stderr)
        return 2
    print(HEAD, flush=True)
    rows = []
    with ThreadPoolExecutor(jobs) as pool:
        for compared in pool.map(lambda question: compare(question, other, timeout, repeat), questions):
            rows.append(compared)
            print(row(compared), flush=True)
            if report is not None:
                report.write_text(as_json(rows, other), encoding="utf-8")
    for line in summary(rows):
        print(line)
    return 1 if slower(rows) else 0


def as_json(rows: Sequence[Compared], other: Path) -> str:
    """The table for programs."""
    told = [{**asdict(each), "keep_apart": each.keep_apart} for each in rows]
    return json.dumps({"before": str(other), "now": str(ROOT), "rows": told}, indent=1) + "\n"
