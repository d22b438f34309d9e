"""Runs a bundle on the GPU of this machine.

    python3 -m hardware.litmus.run BUNDLE --out FOLDER --seconds N [--pass NAME]

It assembles the modules with the ptxas of the path, runs the tests in a worker process, and writes a line of JSON per
test to FOLDER/seen.jsonl. A trap or a hang ends the worker and costs its test. Started again with the same FOLDER it
goes on after the last test of the pass.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hardware.litmus import tally
from hardware.litmus.session import Session

PATIENCE = 10.0
"""Seconds without a word from the worker after which its test counts as hanging."""


def assemble(ptxas: str | None, source: Path, target: Path) -> None:
    """Makes ``target`` from PTX; without an assembler the driver compiles the text. A kernel that does not assemble is
    left out, so that it costs its own test alone.
    """
    part = target.with_suffix(".part")
    if ptxas is None:
        shutil.copy(source, part)
        part.rename(target)
        return
    text = source.read_text()
    while True:
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            file.write(text)
            file.flush()
            command = [ptxas, "-arch", "sm_90a", file.name, "-o", str(part)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not done.returncode:
            break
        said = done.stderr + done.stdout
        print(f"{source.name}: {said[:400]}", flush=True)
        found = re.search(r"line '?(\d+)", said)
        rest = without_kernel(text, int(found.group(1))) if found is not None else None
        if rest is None:
            part.write_bytes(b"")
            break
        text = rest
    part.rename(target)


def without_kernel(text: str, line: int) -> str | None:
    """The module without the kernel that has the line; nothing if none has it, or no other is left."""
    lines = text.split("\n")
    starts = [n for n, found in enumerate(lines) if found.startswith(".visible .entry")]
    start = max((n for n in starts if n < line), default=None)
    if start is None or len(starts) == 1:
        return None
    end = next(n for n in range(start, len(lines)) if lines[n] == "}")
    return "\n".join(lines[:start] + lines[end + 1 :])


def worker() -> None:
    """Runs the tests that come on standard input, a line of JSON each, and answers with a line each."""
    from hardware.driver import CudaError

    first = json.loads(sys.stdin.readline())
    session = Session(Path(first["common"]).read_bytes(), first["seed"])
    about = {"device": session.device.driver.device, "cuda": session.device.driver.version}
    print(json.dumps(about), flush=True)
    for line in sys.stdin:
        test = json.loads(line)
        image = Path(test["image"]).read_bytes()
        started = time.monotonic()
        try:
            seen = session.run(test, image, test["ms"] / 1000)
        except CudaError as error:
            print(json.dumps({"status": f"trap: {error}"[:200]}), flush=True)
            os._exit(1)
        except Exception as error:  # noqa: BLE001 - the next test has to run
            print(json.dumps({"status": f"failed: {type(error).__name__}: {error}"[:200]}), flush=True)
            continue
        answer = {
            "status": "ok",
            "instances": seen.instances,
            "stuck": seen.stuck,
            "lost": seen.lost,
            "seconds": round(time.monotonic() - started, 3),
            "states": [[list(values), count] for values, count in sorted(seen.states.items())],
            "by": seen.by,
        }
        print(json.dumps(answer, separators=(",", ":")), flush=True)


class Worker:
    """A process that runs tests until one traps or hangs."""

    def __init__(self, common: Path, seed: int) -> None:
        command = [sys.executable, "-m", "hardware.litmus.run", "--worker"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()
        self.tell({"common": str(common), "seed": seed})
        self.about = self.answer(60) or {}

    def listen(self) -> None:
        """Passes the lines of the process on; an empty one is its end."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def tell(self, what: dict[str, Any]) -> None:
        """Sends a line."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(what) + "\n")
            self.process.stdin.flush()
        except OSError:
            pass

    def answer(self, patience: float) -> dict[str, Any] | None:
        """The next line, ``None`` if none came in time."""
        try:
            line = self.lines.get(timeout=patience)
        except queue.Empty:
            return None
        found: dict[str, Any] | None = json.loads(line) if line else None
        return found

    def close(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.wait()


def driver_version() -> str:
    """The version of the kernel module, which is one for all GPUs of a host."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.partition("\n")[0].strip()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle", type=Path, nargs="?")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--ms", type=float, help="time of a test, instead of the plan's")
    parser.add_argument("--pass", dest="round", default="1", help="a name: tests run once in each pass")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worker", action="store_true")
    given = parser.parse_args()
    if given.worker:
        worker()
        return
    assert given.bundle is not None
    assert given.out is not None
    run(given.bundle, given.out, given.seconds, given.ms, given.round, given.seed)


def run(bundle: Path, out: Path, seconds: float, ms: float | None, name: str, seed: int) -> None:
    """Runs what of the bundle the pass has not run yet, for that many seconds."""
    end = time.monotonic() + seconds
    out.mkdir(parents=True, exist_ok=True)
    target = out / "seen.jsonl"
    done = set()
    if target.exists():
        rows = [json.loads(line) for line in target.read_text().splitlines()]
        done = {(row["pass"], row["hash"]) for row in rows if "hash" in row}
    tests = [t for t in json.loads((bundle / "plan.json").read_text()) if (name, t["hash"]) not in done]
    folder = Path(tempfile.mkdtemp())
    ptxas = shutil.which("ptxas")
    common = folder / "common.cubin"
    (folder / "common.ptx").write_text(tally.module())
    assemble(ptxas, folder / "common.ptx", common)
    modules = sorted({t["module"] for t in tests}, key=[t["module"] for t in tests].index)
    counts: dict[str, int] = {}
    total = 0
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) - 2)) as pool, target.open("a") as file:
        made = {m: pool.submit(assemble, ptxas, bundle / f"m{m}.ptx", folder / f"m{m}.cubin") for m in modules}
        current = Worker(common, seed)
        about = {**current.about, "driver": driver_version(), "date": datetime.now(UTC).date().isoformat()}
        file.write(json.dumps({"about": about, "pass": name, "seed": seed, "bundle": bundle.name}) + "\n")
        for test in tests:
            if time.monotonic() > end:
                break
            made[test["module"]].result()
            image = folder / f"m{test['module']}.cubin"
            budget = ms if ms is not None else test["ms"]
            current.tell({**test, "image": str(image), "ms": budget})
            answer = current.answer(PATIENCE + budget / 1000) or {"status": "hang"}
            if answer["status"].startswith(("trap", "hang")):
                current.close()
                seed += 1
                current = Worker(common, seed)
            counts[answer["status"][:60]] = counts.get(answer["status"][:60], 0) + 1
            total += answer.get("instances", 0)
            labels = [w["label"] for w in test["watched"]]
            row = {"name": test["name"], "hash": test["hash"], "pass": name, "terms": labels}
            if test.get("contents"):
                row["contents"] = True
            row.update(answer)
            file.write(json.dumps(row, separators=(",", ":")) + "\n")
            file.flush()
        current.close()
        pool.shutdown(cancel_futures=True)
    print(f"{total:,} instances; {sum(counts.values())} of {len(tests)} tests: {counts}", flush=True)


if __name__ == "__main__":
    main()
