"""Compiles the modules of ``tests/simt/launch`` again, and checks each launch against its answer.

    python -m benchmarks.launch_corpus [--only TEXT,…] [--check]        compile, by nvcc and triton
    python -m benchmarks.launch_corpus --answers [--only TEXT,…] [--timeout SECONDS] [-j N] [--together]

Compiling wants the compilers beside the Python that runs it, and no GPU. ``twin2.ptx`` is the same source with
``-DTWIN=2``, or ``build(twin=2)`` of a Python source. ``--check`` writes nothing and tells which modules would change.

``--answers`` prints a row for each launch: its right answer, that of mcheck, and whether they agree. Seconds, and their
limit, are of the processor: whatever else the machine does, the answers are the same. ``--together``
makes the whole grid one cluster where it has at most 16 CTAs, so that they are all followed in one execution graph.
Then they are there at the same time, whatever the launch promises.
"""

from __future__ import annotations

import argparse
import copy
import importlib.metadata
import importlib.util
import json
import math
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.corpus import Missing, changed, lean, report_failure, run_nvcc
from benchmarks.processes import spent

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "simt" / "launch"
LARGEST_CLUSTER = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A module with a launch, and what is right to say of it."""

    kernel: str
    source: Path
    arch: str
    shares: str
    module: Path
    launch: Path
    verdict: str
    also: tuple[str, ...]
    kind: str
    codes: tuple[str, ...]
    lines: frozenset[int]
    today: str
    slow: bool
    why: str

    @property
    def label(self) -> str:
        """``split_k_tickets/twin1`` or, with a launch other than the first, ``grid_barrier/kernel launch-loose``."""
        launch = "" if self.launch.name == "launch.json" else f" {self.launch.stem}"
        return f"{self.kernel}/{self.module.stem}{launch}"

    @property
    def twin(self) -> int:
        """The number of the bug; 0 is the correct kernel."""
        return 0 if self.module.stem == "kernel" else int(self.module.stem.removeprefix("twin"))

    def description(self) -> dict[str, Any]:
        """The launch, in the form of a launch file."""
        found: dict[str, Any] = json.loads(self.launch.read_text(encoding="utf-8"))
        return found


def read_answers(folder: Path = FOLDER) -> Iterator[Answer]:
    """All rows of ``expected.toml``, in order."""
    table = tomllib.loads((folder / "expected.toml").read_text(encoding="utf-8"))
    for kernel in table["kernel"]:
        home = folder / kernel["name"]
        for answer in kernel["answer"]:
            yield Answer(
                kernel=kernel["name"],
                source=home / kernel["source"],
                arch=kernel["arch"],
                shares=kernel["shares"],
                module=home / answer["module"],
                launch=home / answer["launch"],
                verdict=answer["verdict"],
                also=tuple(answer.get("also", ())),
                kind=answer.get("kind", ""),
                codes=tuple(answer.get("codes", ())),
                lines=frozenset(answer.get("lines", ())),
                today=answer.get("today", ""),
                slow=answer.get("slow", False),
                why=answer["why"],
            )


def compile_module(answer: Answer) -> str:
    """The module as it is kept; raises ``Missing`` if the compiler is not installed."""
    defined = f"TWIN={answer.twin}"
    if answer.source.suffix == ".cu":
        text = run_nvcc(answer.source, answer.arch, defines=(defined,))
        version = importlib.metadata.version("nvidia-cuda-nvcc")
        return lean(text, f"// {answer.source.name} by nvcc {version} -arch={answer.arch} -D{defined}")
    if importlib.util.find_spec("triton") is None:
        raise Missing("triton")
    spec = importlib.util.spec_from_file_location(f"launch_{answer.kernel}", answer.source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    text = module.build(answer.twin).asm["ptx"]
    version = importlib.metadata.version("triton")
    return lean(text, f"// {answer.source.name} by triton {version} for {answer.arch}, {defined}")


def compile_all(chosen: list[Answer], *, check: bool) -> int:
    """Writes (or compares) the modules; the exit status."""
    bad = 0
    for answer in {answer.module: answer for answer in chosen}.values():
        name = f"{answer.kernel}/{answer.module.name}"
        try:
            text = compile_module(answer)
        except (Missing, subprocess.CalledProcessError) as error:
            bad += report_failure(name, error)
            continue
        news = changed(answer.module, text)
        print(f"{name}: {'changed' if news else 'as it was'}")
        if check:
            bad += news
        elif news:
            answer.module.write_text(text, encoding="utf-8")
    return 1 if bad else 0


def together(description: dict[str, Any]) -> dict[str, Any] | None:
    """The launch with its grid as one cluster; None if it is too large, has clusters, or is several launches."""
    several = "launches" in description or "cluster" in description
    if several or math.prod(description["grid"]) > LARGEST_CLUSTER:
        return None
    found = copy.deepcopy(description)
    found["cluster"] = found["grid"]
    found.pop("cooperative", None)
    return found


def agrees(answer: Answer, found: Any) -> bool:
    """Whether what mcheck says is right: the verdict, and of a finding its kind, its code and where it is.

    All accesses of a race have to be at the named lines; of a deadlock, one wait.
    """
    if found.verdict != answer.verdict:
        return found.verdict in answer.also and not _errors(found)
    return answer.verdict != "finding" or any(names_it(answer, finding) for finding in found.findings)


def names_it(answer: Answer, finding: Any) -> bool:
    """Whether a finding is the one that the row describes; accesses without a line of the source are passed over."""
    if finding.kind != answer.kind or not any(finding.code.startswith(code) for code in answer.codes):
        return False
    name = answer.source.name
    at = [
        any(Path(place.path).name == name and place.line in answer.lines for place in access.source)
        for access in finding.accesses
        if access.source
    ]
    return bool(at) and (all(at) if answer.kind == "race" else any(at))


def _errors(found: Any) -> list[Any]:
    return [finding for finding in found.findings if finding.severity == "error"]


def ask(answer: Answer, timeout: float, *, as_cluster: bool) -> tuple[Any, float] | None:
    """mcheck's answer and its seconds of the processor; None if the grid cannot be one cluster."""
    from mcheck.checking.check.command import crashed_check
    from mcheck.checking.check.modules import check_text
    from mcheck.checking.run.case import Case, Options, Settings
    from mcheck.checking.run.pool import run_cases
    from mcheck.frontend.ptx import launch_reader

    description = together(answer.description()) if as_cluster else answer.description()
    if description is None:
        return None
    settings = Settings(timeout=timeout, processor_time=True)
    launch, text = launch_reader.from_object(description), answer.module.read_text(encoding="utf-8")

    def run(case: Case, settings: Settings) -> Any:
        return check_text(text, case.path, launch, settings, Options())

    before = spent()
    (found,) = run_cases([Case(str(answer.module), text=text)], settings, 1, run, crashed_check)
    return found, spent() - before


def compare_all(chosen: list[Answer], timeout: float, jobs: int, *, as_cluster: bool) -> int:
    """Prints a row for each launch; exit status 1 if one is not as expected."""
    wrong = 0
    with ProcessPoolExecutor(jobs) as pool:
        asked = pool.map(partial(ask, timeout=timeout, as_cluster=as_cluster), chosen)
        for answer, got in zip(chosen, asked, strict=True):
            if got is None:
                continue
            found, seconds = got
            right = agrees(answer, found)
            wrong += not right
            said = "|".join(sorted({finding.code for finding in found.findings})) or found.reason or found.problem or ""
            mark = "" if right else "  DIFFERS"
            start = f"{answer.label:<46} {answer.verdict:<8} {found.verdict:<8} {seconds:>6.1f}{mark}"
            print(f"{start}  {said}"[:220], flush=True)
    print(f"{wrong} differ")
    return 1 if wrong else 0


def main() -> int:
    """Compiles, or with ``--answers`` checks, the chosen kernels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of names, separated by commas")
    parser.add_argument("--check", action="store_true", help="write nothing, tell what would change")
    parser.add_argument("--answers", action="store_true", help="check the launches instead")
    parser.add_argument("--together", action="store_true", help="with --answers: the grid as one cluster")
    parser.add_argument("--timeout", type=float, default=60.0, help="with --answers: seconds for each launch")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="with --answers: launches checked at the same time")
    options = parser.parse_args()
    parts = [part for part in options.only.split(",") if part]
    chosen = [answer for answer in read_answers() if not parts or any(part in answer.label for part in parts)]
    if options.answers:
        return compare_all(chosen, options.timeout, options.jobs, as_cluster=options.together)
    return compile_all(chosen, check=options.check)


if __name__ == "__main__":
    sys.exit(main())
