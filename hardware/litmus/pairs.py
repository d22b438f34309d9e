"""Litmus tests whose threads stand on two GPUs of one host, run there and held against the model.

    python -m hardware.litmus.pairs --out FOLDER [--seconds N] [--ms N] [--home 0|1|split|crossed|all] [--only PREFIX]
    python -m hardware.litmus.pairs --out FOLDER --table         # what the folder has, without a GPU
    python -m hardware.litmus.pairs --out FOLDER --bundle        # the modules alone

All tests of ``litmus/`` with roles on ``gpu 0`` and ``gpu 1`` that two GPUs of sm_90 can run, then the classic shapes
of ``hardware/litmus/pair_families.py``. A module has two kernels per test, the roles of either GPU; the grids meet at a
counter of scope sys before every round. FOLDER gets ``seen.jsonl``, to which a later call adds the tests that it lacks,
and ``table.csv``. Exit status 1 if a state was seen that the model forbids. Where the path has no ptxas
the driver compiles.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hardware.driver import CudaError
from hardware.emit import CannotEmit
from hardware.litmus import tally
from hardware.litmus.compare import Compared, as_seen, compare
from hardware.litmus.kernel import Kernel, kernel, module
from hardware.litmus.observe import observed
from hardware.litmus.pair_families import pair_families
from hardware.litmus.pair_session import HOMES, PairSession
from hardware.litmus.plan import describe
from hardware.litmus.run import assemble, driver_version
from mcheck.cat import load_model
from mcheck.frontend import litmus
from mcheck.ir.program import Program
from mcheck.report.hardware_results import Observation, hash_text, load

LITMUS = Path(__file__).parents[2] / "litmus"
MODEL = "ptx-9.0"
PER_MODULE = 16
STRONG_COPY = re.compile(r"\bcp\.(reduce\.)?async\.bulk\S*\.relaxed\.")
PATIENCE = 60
"""Seconds beyond its own after which a process that measures counts as hanging."""
COLUMNS = ("test", "instances", "states seen", "of allowed", "weak", "rate", "most with", "model", "outside")


def placed_on_two(only: str) -> Iterator[tuple[str, Program]]:
    """The tests whose names begin so: first those of the suites."""
    for file in sorted(LITMUS.rglob("*.litmus")):
        name = str(file.relative_to(LITMUS.parent))
        if name.startswith(only):
            program = litmus.load(str(file))
            if {t.place.cta.gpu for t in program.threads} == {0, 1}:
                yield name, observed(program)
    for name, text in pair_families():
        if f"pairs/{name}".startswith(only):
            yield f"pairs/{name}", litmus.parse(text, f"{name}.litmus")


def pair_entry(program: Program, number: int) -> tuple[list[Kernel], dict[str, Any]]:
    """The kernels of a program on either GPU, and its row of the plan; raises ``CannotEmit``."""
    if {t.place.cta.gpu for t in program.threads} != {0, 1}:
        raise CannotEmit("its threads are not on two GPUs")
    if program.model not in (None, MODEL):
        raise CannotEmit("it speaks about another model")
    if any(STRONG_COPY.search(op.text) for op in program.operations):
        raise CannotEmit("its copies have a scope, which PTX 9.0 does not spell")
    items = [i.object for i in program.memory.instances]
    if any(i.tensor_map or i.alias_of is not None or i.alias_proxy is not None for i in items):
        raise CannotEmit("it has tensor maps or aliases")
    made = [kernel(program, f"t{number}_{gpu}", gpu) for gpu in range(2)]
    if any(o.proxy for o in made[0].objects):
        raise CannotEmit("it has textures or surfaces")
    own = Counter(t.place.cta.number for t in program.threads)
    gpus = {t.place.cta.number: t.place.cta.gpu for t in program.threads}
    return made, {
        **describe(program, made[0]),
        "entries": [m.name for m in made],
        "own": [sum(gpus[cta] == gpu for cta in own) for gpu in range(2)],
        "slot_gpus": made[0].slot_gpus,
    }


def plan(found: Iterable[tuple[str, Program]]) -> tuple[list[dict[str, Any]], list[str], Counter[str]]:
    """The rows of the tests, the modules, and the reasons why others are not among them."""
    rows: list[dict[str, Any]] = []
    texts: list[str] = []
    skipped: Counter[str] = Counter()
    for name, program in found:
        try:
            made, row = pair_entry(program, len(rows))
        except CannotEmit as reason:
            skipped[str(reason)] += 1
            continue
        about = {"name": name, "hash": hash_text(program.source), "text": program.source}
        rows.append({**about, "module": len(rows) // PER_MODULE, **row})
        texts.append("".join(m.text for m in made))
    modules = [module(texts[n : n + PER_MODULE]) for n in range(0, len(texts), PER_MODULE)]
    return rows, modules, skipped


def write_bundle(out: Path, only: str) -> None:
    """Writes ``plan.json`` and the modules; says what is left out, and why."""
    rows, modules, skipped = plan(placed_on_two(only))
    out.mkdir(parents=True, exist_ok=True)
    (out / "common.ptx").write_text(tally.module())
    for number, text in enumerate(modules):
        (out / f"m{number}.ptx").write_text(text)
    (out / "plan.json").write_text(json.dumps(rows, separators=(",", ":")) + "\n")
    print(f"{len(rows)} of {len(rows) + skipped.total()} tests", flush=True)
    for reason, count in skipped.most_common():
        print(f"{count:5} {reason}", flush=True)


def assemble_all(bundle: Path) -> None:
    """Makes images of the modules by the ptxas of the path; without one the driver gets their texts."""
    sources = sorted(bundle.glob("*.ptx"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda source: assemble(shutil.which("ptxas"), source, source.with_suffix(".cubin")), sources))


def missing(bundle: Path, target: Path) -> list[dict[str, Any]]:
    """The tests of a bundle that have no result yet."""
    rows = [json.loads(line) for line in target.read_text().splitlines()] if target.exists() else []
    done = {row["hash"] for row in rows if "status" in row}
    return [test for test in json.loads((bundle / "plan.json").read_text()) if test["hash"] not in done]


def measure(bundle: Path, target: Path, given: argparse.Namespace) -> None:
    """Runs what is missing, and adds a line of JSON for each test; a trap costs its test and ends the process."""
    end = time.monotonic() + given.seconds
    homes = list(HOMES) if given.home == "all" else [given.home]
    session = PairSession((bundle / "common.cubin").read_bytes(), given.seed, homes)
    driver = session.sides[0].device.driver
    about = {
        "device": f"2 x {driver.device}",
        "cuda": driver.version,
        "driver": driver_version(),
        "date": datetime.now(UTC).date().isoformat(),
    }
    with target.open("a") as file:

        def add(row: dict[str, Any]) -> None:
            file.write(json.dumps(row, separators=(",", ":")) + "\n")
            file.flush()

        add({"about": about, "pass": "1", "seed": given.seed})
        for test in missing(bundle, target):
            if time.monotonic() > end:
                break
            head = {"name": test["name"], "hash": test["hash"]}
            labels = [w["label"] for w in test["watched"]]
            row = {**head, "pass": "1", "terms": labels, "contents": test["contents"]}
            began = time.monotonic()
            try:
                seen = session.run(test, (bundle / f"m{test['module']}.cubin").read_bytes(), given.ms / 1000)
            except CudaError as error:
                add({**row, "status": f"trap: {error}"[:200]})
                raise SystemExit(1) from error
            add({**head, "text": test["text"]})
            states = [[list(values), count] for values, count in sorted(seen.states.items())]
            counts = {"instances": seen.instances, "stuck": seen.stuck, "lost": seen.lost}
            spent = {"seconds": round(time.monotonic() - began, 3)}
            add({**row, "status": "ok", **counts, **spent, "states": states, "by": seen.by})


def table_row(seen: Observation, found: Compared, *, asks: bool) -> dict[str, Any]:
    """What the table says of a test; ``asks``: it has a condition."""
    if found.undefined:
        says = f"undefined ({', '.join(found.undefined)})"
    elif found.unknown:
        says = f"unknown: {found.unknown}"
    else:
        says = ("forbidden" if found.forbids else "allowed") if asks else "asks nothing"
    best, rate = seen.strongest_setting
    states = len(seen.states)
    values = (
        seen.name,
        seen.instances,
        states,
        len(found.allowed),
        seen.hits,
        f"{seen.hits / max(seen.instances, 1):.1e}",
        f"{best} ({rate:.1e})" if rate else "",
        says,
        f"{len(found.beyond)} NOT ALLOWED" if found.contradicts else "",
    )
    return dict(zip(COLUMNS, values, strict=True))


def tell(out: Path) -> int:
    """Prints the table and writes it; the number of tests with a state outside the model."""
    _, observations = load(out / "seen.jsonl")
    bad, total = 0, 0
    with (out / "table.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for seen in observations.values():
            if not seen.states:
                print(f"{seen.name}: {', '.join(seen.statuses) or 'nothing seen'}")
                continue
            program = as_seen(seen)
            found = compare(program, seen, load_model(MODEL))
            row = table_row(seen, found, asks=program.condition.kind != "none")
            writer.writerow(row)
            stuck = f", {seen.stuck} stuck" if seen.stuck else ""
            what = f"{row['states seen']} of {row['of allowed']} states, weak {row['rate']}, {row['model']}{stuck}"
            print(f"{seen.name:<52} {seen.instances:>13,} {what} {row['outside']}")
            bad += found.contradicts
            total += seen.instances
    print(f"{len(observations)} tests, {total:,} instances; {bad} with a state that the model does not allow")
    return bad


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=400, help="for the measurements")
    parser.add_argument("--ms", type=float, default=150, help="time of a test, at least a launch for each setting")
    parser.add_argument("--home", choices=[*HOMES, "all"], default="all", help="the GPUs of the words")
    parser.add_argument("--only", default="", help="tests whose name starts so")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="only compare what FOLDER has")
    parser.add_argument("--bundle", action="store_true", help="only write the modules to FOLDER")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    target = given.out / "seen.jsonl"
    if given.measure is not None:
        measure(given.measure, target, given)
        return 0
    if given.bundle:
        write_bundle(given.out, given.only)
        return 0
    if not given.table:
        supervise(target, given)
    if not target.exists():
        print("nothing was measured")
        return 2
    return 1 if tell(given.out) else 0


def supervise(target: Path, given: argparse.Namespace) -> None:
    """Measures in processes of their own, as long as there is time and each of them gets some test done."""
    end = time.monotonic() + given.seconds
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder)
        write_bundle(bundle, given.only)
        assemble_all(bundle)
        left, before = missing(bundle, target), 0
        while left and len(left) != before and (seconds := end - time.monotonic()) > 0:
            before = len(left)
            command = [sys.executable, "-m", "hardware.litmus.pairs", "--out", str(given.out), "--measure", folder]
            more = ["--seconds", str(seconds), "--ms", str(given.ms), "--home", given.home, "--seed", str(given.seed)]
            try:
                subprocess.run([*command, *more], check=False, timeout=seconds + PATIENCE)
            except subprocess.TimeoutExpired:
                print("a test hangs", flush=True)
            left = missing(bundle, target)
    print(f"{len(left)} tests are left", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
