"""SentryWard beside mcheck on ``tests/simt/launch`` and ``tests/simt/corpus``: verdicts, seconds of the processor.

    python -m benchmarks.sentryward [--python PATH] [--twins] [--only TEXT,…] [--timeout SECONDS] [-j N] [--json FILE]

SentryWard (PyPI, ``pip install sentryward``, Apache 2.0) is a static verifier of PTX that models no fences and no
memory model, has no sizes of buffers, and follows the whole grid at fixed sizes. ``--python`` names the Python that it
is installed for, in an environment of its own; mcheck does not use it. Both are run as processes, so that the start-up
of each counts. Correct kernels are asked about, and with ``--twins`` those with one bug each, too. Several launches,
tensor maps of images and parameters that are any number are told to mcheck alone: rows that need them are counted, and
left out of the seconds.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.checkouts import ROOT, ask
from benchmarks.launch_corpus import read_answers
from benchmarks.modules import cases
from benchmarks.processes import run_process

TOOLS = ("mcheck", "SentryWard")
SCHEMA = "spverify.kernel-input/v1"
PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+(?:\.ptr\s+(?:\.\w+\s+)?(?:\.align\s+\d+\s+)?)?(\w+)")
SAYS = {
    "race_free": "proved",
    "potential_race": "finding",
    "not_wellsynced": "finding",
    "invalid_lifecycle": "finding",
}
"""Its results in mcheck's words; any other result decides nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A module with its launch and the verdict that is right; ``also`` are others that are no mistake."""

    corpus: str
    label: str
    module: str
    launch: str
    bug: bool
    verdict: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ran:
    """What a tool said of a launch, in the words of mcheck, with its own words, and its seconds of the processor and by
    the clock.
    """

    verdict: str
    words: str
    seconds: float
    wall: float = 0.0


def read_rows() -> Iterator[Row]:
    """Every launch of ``tests/simt/launch``, then every module of ``tests/simt/corpus`` and its twins."""
    for answer in read_answers():
        module, launch = (path.read_text(encoding="utf-8") for path in (answer.module, answer.launch))
        bug = answer.verdict == "finding"
        yield Row(
            corpus="launch", label=answer.label, module=module, launch=launch, bug=bug,
            verdict=answer.verdict, also=answer.also,
        )  # fmt: skip
    for case in cases():
        bug, launch = bool(case.edits), case.path.with_suffix(".json").read_text(encoding="utf-8")
        verdict = "finding" if bug else "proved"
        yield Row(corpus="corpus", label=case.label, module=case.text(), launch=launch, bug=bug, verdict=verdict)


def describe(module: str, launch: Mapping[str, Any]) -> dict[str, Any] | str:
    """The launch as SentryWard reads it; or what it cannot be told of.

    Buffers, and what the launch leaves out, are left to SentryWard, which takes each pointer for an object of its own.
    """
    if "launches" in launch:
        return "several launches"
    entry = launch.get("entry")
    head = module[module.index(f".entry {entry}") :] if entry else module[module.index(".entry ") :]
    arguments, maps = [], []
    for at, (kind, name) in enumerate(PARAMETER.findall(head[: head.index("{")])):
        value = launch["params"].get(str(at), launch["params"].get(name))
        if value is None or (isinstance(value, dict) and "buffer" in value):
            continue
        if isinstance(value, dict) and "hex" in value:
            arguments += describe_block(name, value)
        elif isinstance(value, dict) and "tensormap" in value:
            if (told := describe_map(name, value["tensormap"])) is None:
                return "tensor maps of images"
            maps.append(told)
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            return "other parameters"
        else:
            arguments.append({"parameter": name, "offset": 0, "type": kind, "value": value})
    fields = ("grid", "block", "cluster") if "cluster" in launch else ("grid", "block")
    sizes: dict[str, Any] = {f"{field}_dim": [*launch[field], 1, 1][:3] for field in fields}
    if "shared" in launch:
        sizes["dynamic_shared_bytes"] = launch["shared"]
    described = {"schema": SCHEMA, "launch": sizes, "arguments": arguments}
    described |= {"tma_descriptors": maps} if maps else {}
    return {**described, "entry": entry} if entry else described


def describe_map(name: str, tensormap: Mapping[str, Any]) -> dict[str, Any] | None:
    """A tensor map, whose tensor is an object of its own unless it is that of a parameter; none if it is of images."""
    if "box_dim" not in tensormap:
        return None
    address = tensormap["global_address"]
    return {
        "parameter": name,
        "offset": 0,
        "object": address if isinstance(address, str) else f"tensor of {name}",
        "element_type": tensormap["elemtype"],
        "rank": tensormap["rank"],
        "global_shape": tensormap["global_dim"],
        "global_strides_bytes": tensormap["global_stride"],
        "box_shape": tensormap["box_dim"],
        "element_strides": tensormap["element_stride"],
        "interleave": tensormap.get("interleave_layout", "none"),
        "swizzle": tensormap.get("swizzle_mode", "none"),
        "oob_fill": tensormap.get("fill_mode", "zero"),
    }


def describe_block(name: str, value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The bytes of a block of parameters, but for the pointers in it."""
    pointers = {int(at) + k for at in value.get("at", ()) for k in range(8)}
    return [
        {"parameter": name, "offset": at, "type": "u8", "value": byte}
        for at, byte in enumerate(bytes.fromhex(value["hex"]))
        if at not in pointers
    ]


def ask_sentryward(python: str, module: Path, description: dict[str, Any], timeout: float, limit: int) -> Ran:
    """SentryWard's result, and why it has none."""
    told = module.with_suffix(".told")
    told.write_text(json.dumps(description), encoding="utf-8")
    command = [python, "-m", "sentryward", str(module), "--input", str(told)]
    command += ["--timeout", str(timeout), "--memory-limit-mib", str(limit)]
    done = run_process(command, 2 * timeout + 10)
    result = json.loads(done.output) if done.output and not done.stopped else {"result": "timeout"}
    words = result["result"]
    why = next((found["code"] for found in result.get("diagnostics", ())), "") if words not in SAYS else ""
    said = f"{words}: {why}" if why else words
    return Ran(SAYS.get(words, "unknown"), said, done.processor, done.wall)


def ask_mcheck(module: Path, timeout: float) -> Ran:
    """mcheck's verdict and its codes."""
    answer = ask(ROOT, module, timeout, limit="--cpu-timeout")
    return Ran(answer.verdict, "|".join(answer.codes), answer.seconds, answer.wall)


def judge(row: Row, verdict: str) -> str:
    """``right``, ``wrong`` or ``open``, by the answer that is known."""
    if verdict == row.verdict:
        return "right"
    return "wrong" if {verdict, row.verdict} == {"proved", "finding"} and verdict not in row.also else "open"


def ask_both(row: Row, python: str, timeout: float, limit: int) -> dict[str, Ran] | str:
    """What both say; or what SentryWard cannot be told of."""
    description = describe(row.module, json.loads(row.launch))
    if isinstance(description, str):
        return description
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "module.ptx"
        module.write_text(row.module, encoding="utf-8")
        module.with_suffix(".json").write_text(row.launch, encoding="utf-8")
        return {
            "mcheck": ask_mcheck(module, timeout),
            "SentryWard": ask_sentryward(python, module, description, timeout, limit),
        }


def missing(python: str) -> str | None:
    """Why SentryWard cannot be asked, with what to do about it."""
    found = shutil.which(python)
    asked = [found, "-c", "import sentryward"] if found else None
    if asked and not subprocess.run(asked, capture_output=True, check=False).returncode:
        return None
    return f"{python} does not have it: pip install sentryward, in an environment of its own whose Python is then named"


GROUPS = tuple(
    (corpus, bug, f"{corpus}, {'one bug each' if bug else 'correct'}")
    for corpus in ("launch", "corpus")
    for bug in (False, True)
)
"""The rows that are summed: by corpus, right kernels and those with a bug apart; with how they are called."""


def summarize(asked: Sequence[tuple[Row, dict[str, Ran] | str]]) -> Iterator[str]:
    """The sums below the rows: by corpus, right kernels and those with a bug apart."""
    for corpus, bug, name in GROUPS:
        mine = [(row, ran) for row, ran in asked if row.corpus == corpus and row.bug == bug]
        if not mine:
            continue
        yield f"{name}: {len(mine)}"
        told = [(row, ran) for row, ran in mine if not isinstance(ran, str)]
        for tool in TOOLS if told else ():
            said = [(row, ran[tool]) for row, ran in told]
            counts = Counter(judge(row, each.verdict) for row, each in said)
            sums = ", ".join(f"{counts[judged]} {judged}" for judged in ("right", "wrong", "open"))
            yield f"  {tool}: {sums}; {sum(each.seconds for _, each in said):.1f} s of the processor"
        for why, count in Counter(ran for _, ran in mine if isinstance(ran, str)).most_common():
            yield f"  not told to SentryWard: {count} ({why})"
        unanswered = Counter(ran["SentryWard"].words for _, ran in told if ran["SentryWard"].verdict == "unknown")
        for why, count in unanswered.most_common():
            yield f"  no answer of SentryWard: {count} ({why})"


def line(row: Row, ran: dict[str, Ran] | str) -> str:
    """A row of the table."""
    start = f"{row.label:<56} {row.verdict:<8}"
    if isinstance(ran, str):
        return f"{start}  not told to SentryWard: {ran}"
    for said in ran.values():
        start += f"  {judge(row, said.verdict):<5} {said.words or said.verdict:<28.28} {said.seconds:>6.2f}"
    return start


def as_json(asked: Sequence[tuple[Row, dict[str, Ran] | str]]) -> str:
    """The table for programs."""
    rows = [
        {
            **{name: getattr(row, name) for name in ("corpus", "label", "bug", "verdict")},
            "said": ran if isinstance(ran, str) else {tool: asdict(said) for tool, said in ran.items()},
        }
        for row, ran in asked
    ]
    return json.dumps(rows, indent=1) + "\n"


def main() -> int:
    """Prints a row for each launch, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the Python that SentryWard is installed for")
    parser.add_argument("--twins", action="store_true", help="kernels with a bug, too")
    parser.add_argument("--only", default="", help="parts of names, separated by commas")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for each answer")
    parser.add_argument("--limit", type=int, default=4096, help="MiB for SentryWard")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here as well")
    options = parser.parse_args()
    if (why := missing(options.python)) is not None:
        sys.exit(f"SentryWard is not there: {why}")
    parts = [part for part in options.only.split(",") if part]
    chosen = [
        row
        for row in read_rows()
        if (options.twins or not row.bug) and (not parts or any(part in row.label for part in parts))
    ]
    asked = []
    with ThreadPoolExecutor(options.jobs) as pool:
        said = pool.map(lambda row: ask_both(row, options.python, options.timeout, options.limit), chosen)
        for row, ran in zip(chosen, said, strict=True):
            asked.append((row, ran))
            print(line(row, ran), flush=True)
            if options.json is not None:
                options.json.write_text(as_json(asked), encoding="utf-8")
    for told in summarize(asked):
        print(told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
