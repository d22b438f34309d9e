"""SentryWard beside mcheck on the launches of ``tests/simt/launch``: verdicts, and seconds of the processor.

    python -m benchmarks.sentryward [--only TEXT,…] [--timeout SECONDS] [--limit MEBIBYTES]

SentryWard (PyPI, ``pip install sentryward``, Apache 2.0) is a static verifier of PTX that models no fences and no
memory model, has no sizes of buffers, and follows the whole grid at fixed sizes. It has to be installed beside the
Python that runs this; mcheck does not use it. Both are run as processes, so that the start-up of each counts. Tensor
maps, clusters and several launches are told to mcheck alone: rows that need them are left out, and counted.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.launch_corpus import Answer, read_answers

SCHEMA = "spverify.kernel-input/v1"
PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+(\w+)")
SAYS = {
    "race_free": "proved",
    "potential_race": "finding",
    "not_wellsynced": "finding",
    "invalid_lifecycle": "finding",
}
"""Its results in mcheck's words; any other result decides nothing."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a tool said of a launch, in the words of mcheck, with its own words and its seconds of the processor."""

    verdict: str
    words: str
    seconds: float


def describe(module: str, launch: Mapping[str, Any]) -> dict[str, Any] | None:
    """The launch as SentryWard reads it; None if it says more than whole numbers and plain buffers.

    Buffers are left to SentryWard's own assumption that each pointer is an object of its own.
    """
    if "launches" in launch or "cluster" in launch:
        return None
    arguments = []
    for at, (kind, name) in enumerate(PARAMETER.findall(module)):
        value = launch["params"].get(str(at), launch["params"].get(name))
        if isinstance(value, dict) and "buffer" in value:
            continue
        if not isinstance(value, (int, float)):
            return None
        arguments.append({"parameter": name, "offset": 0, "type": kind, "value": value})
    sizes = {f"{field}_dim": [*launch[field], 1, 1][:3] for field in ("grid", "block")}
    if "shared" in launch:
        sizes["dynamic_shared_bytes"] = launch["shared"]
    return {"schema": SCHEMA, "launch": sizes, "arguments": arguments}


def run_process(command: list[str], timeout: float) -> tuple[str, float]:
    """(standard output, seconds of the processor) of a command; no output if it is stopped."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False).stdout
    except subprocess.TimeoutExpired:
        output = ""
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return output, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ask_sentryward(answer: Answer, description: dict[str, Any], timeout: float, limit: int) -> Ran:
    """SentryWard's result."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "input.json"
        told.write_text(json.dumps(description), encoding="utf-8")
        command = [sys.executable, "-m", "sentryward", str(answer.module), "--input", str(told)]
        command += ["--timeout", str(timeout), "--memory-limit-mib", str(limit)]
        output, seconds = run_process(command, timeout + 10)
    words = json.loads(output)["result"] if output else "timeout"
    return Ran(SAYS.get(words, "unknown"), words, seconds)


def ask_mcheck(answer: Answer, timeout: float) -> Ran:
    """mcheck's verdict and its codes."""
    command = [sys.executable, "-m", "mcheck", "check", str(answer.module), "--launch", str(answer.launch)]
    output, seconds = run_process([*command, "--format", "json", "--timeout", str(timeout)], timeout + 10)
    if not output:
        return Ran("unknown", "timeout", seconds)
    result = json.loads(output)["results"][0]
    codes = sorted({found["code"] for found in result["findings"] if found["severity"] == "error"})
    return Ran(result["verdict"], "|".join(codes), seconds)


def judge(answer: Answer, verdict: str) -> str:
    """``right``, ``wrong`` or ``open``, by the row of ``expected.toml``."""
    if verdict == answer.verdict:
        return "right"
    return "wrong" if {verdict, answer.verdict} == {"proved", "finding"} and verdict not in answer.also else "open"


def main() -> int:
    """Prints a row for each launch, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of names, separated by commas")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for each launch")
    parser.add_argument("--limit", type=int, default=4096, help="MiB for SentryWard")
    options = parser.parse_args()
    if importlib.util.find_spec("sentryward") is None:
        sys.exit("SentryWard is not installed: pip install sentryward")
    parts = [part for part in options.only.split(",") if part]
    counts: Counter[tuple[str, str]] = Counter()
    spent = dict.fromkeys(("mcheck", "sentryward"), 0.0)
    left_out = 0
    for answer in read_answers():
        if parts and not any(part in answer.label for part in parts):
            continue
        description = describe(answer.module.read_text(encoding="utf-8"), answer.description())
        if description is None:
            left_out += 1
            continue
        ran = {
            "mcheck": ask_mcheck(answer, options.timeout),
            "sentryward": ask_sentryward(answer, description, options.timeout, options.limit),
        }
        row = f"{answer.label:<40} {answer.kind or answer.verdict:<9}"
        for tool, said in ran.items():
            judged = judge(answer, said.verdict)
            counts[tool, judged] += 1
            spent[tool] += said.seconds
            row += f"  {judged:<5} {said.words or said.verdict:<22.22} {said.seconds:>6.2f}"
        print(row, flush=True)
    for tool in spent:
        sums = ", ".join(f"{counts[tool, judged]} {judged}" for judged in ("right", "wrong", "open"))
        print(f"{tool}: {sums}; {spent[tool]:.1f} s of the processor")
    print(f"left out: {left_out} (tensor maps, clusters, several launches, unknown parameters)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
