"""Runs the cases on the GPU of this machine and writes what it answered.

    python3 -m hardware.run --out FOLDER [--seed N] [--only PREFIX]

A trap ends a CUDA context, so the cases run in a worker process that is replaced when one traps.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hardware import encodings
from hardware.cases import Case, cases
from hardware.data import make
from hardware.driver import CudaError, Driver
from hardware.emit import Module, module
from hardware.model import program_of
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE, SHARED_WINDOW
from mcheck.ir.program import Program

FILL = b"\xa5"
PATIENCE = 60


def run_case(driver: Driver, case: Case) -> dict[str, Any]:
    """One case on the chip, in the form of ``hardware.model.answer`` with bytes as base64."""
    from dataclasses import replace

    program = program_of(case)
    kernel = module(program)
    contents = bytearray(FILL * kernel.global_bytes)
    globals_ = [i for i in program.memory.instances if i.cta is None]
    base = driver.allocate(kernel.global_bytes)
    results = driver.allocate(kernel.result_bytes)
    try:
        for instance in globals_:
            at = instance.base - GLOBAL_BASE
            if instance.object.tensor_map:
                specs = [
                    replace(s, global_address=s.global_address - GLOBAL_BASE + base) for s in instance.object.tensor_map
                ]
                data = b"".join(driver.encode(s) for s in specs)
            elif instance.object.name in case.data:
                data = make(*case.data[instance.object.name], instance.object.size)
            else:
                data = (instance.object.init or b"").ljust(instance.object.size, b"\0")
            contents[at : at + len(data)] = data
    except CudaError as error:
        driver.free(base)
        driver.free(results)
        return {"status": f"refused {error.code} {error.name}"}
    driver.write(base, bytes(contents))
    driver.write(results, bytes(kernel.result_bytes))
    driver.launch(kernel.text, len(kernel.ctas), kernel.threads_per_cta, kernel.shared_bytes, [base, results])
    after, out = driver.read(base, kernel.global_bytes), driver.read(results, kernel.result_bytes)
    driver.free(base)
    driver.free(results)
    return _answer(program, kernel, bytes(contents), after, out)


def _answer(program: Program, kernel: Module, before: bytes, after: bytes, out: bytes) -> dict[str, Any]:
    memory: dict[str, str] = {}
    covered = bytearray(len(before))
    for instance in program.memory.instances:
        size = instance.object.size
        if instance.cta is None:
            at = instance.base - GLOBAL_BASE
            covered[at : at + size] = b"\1" * size
            old, data = before[at : at + size], after[at : at + size]
        else:
            at = instance.cta.number * kernel.cta_bytes + 16 + (instance.base - SHARED_BASE) % SHARED_WINDOW
            old, data = b"", out[at : at + size]
        if instance.object.elem not in ("b64", "tensormap"):
            memory[instance.label] = "same" if data == old else base64.b64encode(data).decode()
    registers: dict[str, int] = {}
    status = "ok"
    for thread in program.threads:
        at = kernel.thread_offset(thread.index)
        if not int.from_bytes(out[at : at + 4], "little"):
            status = "stuck"
        for k, (name, kind) in enumerate(thread.types.items()):
            if kind == "pred":
                where = at + 16 + 8 * k
                registers[f"{thread.name}:{name}"] = int.from_bytes(out[where : where + 4], "little")
    answer: dict[str, Any] = {"status": status, "registers": registers, "memory": memory}
    if any(a != b and not c for a, b, c in zip(before, after, covered, strict=True)):
        answer["stray"] = True
    starts = {int.from_bytes(out[n * kernel.cta_bytes :][:4], "little") % 1024 for n in range(len(kernel.ctas))}
    if starts != {0}:
        answer["shared_base"] = sorted(starts)
    return answer


# --- workers ------------------------------------------------------------------------------------------


def worker() -> None:
    """Answers one line of JSON per line of JSON; ends with the context."""
    driver = Driver()
    print(json.dumps({"device": driver.device, "version": driver.version}), flush=True)
    for line in sys.stdin:
        case = Case.from_json(json.loads(line))
        try:
            answer = run_case(driver, case)
        except CudaError as error:
            print(json.dumps({"status": f"trap {error.code} {error.name}", "detail": str(error)[:300]}), flush=True)
            return
        except Exception as error:  # noqa: BLE001 - the next case has to run
            answer = {"status": f"failed {type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


class Worker:
    """A process that runs cases until one traps."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "hardware.run", "--worker"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.about: dict[str, str] = json.loads(self.process.stdout.readline())

    def ask(self, case: Case) -> dict[str, Any] | None:
        """The answer, ``None`` if the process died or had to be stopped."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        timer = threading.Timer(PATIENCE, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(json.dumps(case.to_json()) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except OSError:
            return None
        finally:
            timer.cancel()
        return json.loads(line) if line else None

    def close(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.wait()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--worker", action="store_true")
    given = parser.parse_args()
    if given.worker:
        worker()
        return
    assert given.out is not None
    given.out.mkdir(parents=True, exist_ok=True)
    current = Worker()
    about = {**current.about, "driver": _driver(), "date": datetime.now(UTC).date().isoformat(), "seed": given.seed}
    lines = [json.dumps(about)]
    counts: dict[str, int] = {}
    for case in cases(given.seed):
        if not case.name.startswith(given.only):
            continue
        answer = current.ask(case)
        if answer is None:
            answer = {"status": "lost"}
        if answer["status"].startswith(("trap", "lost")):
            current.close()
            current = Worker()
        key = f"{case.group}: {answer['status']}"
        counts[key] = counts.get(key, 0) + 1
        lines.append(json.dumps({"case": case.to_json(), "answer": answer}))
    current.close()
    driver = Driver()
    for spec in encodings.encodings():
        try:
            driver.encode(spec)
            refused = None
        except CudaError as error:
            refused = error.code
        lines.append(json.dumps({"encode": encodings.to_json(spec), "refused": refused}))
    with gzip.open(given.out / "observed.jsonl.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    for key in sorted(counts):
        print(counts[key], key)


def _driver() -> str:
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return text.split("\n", 1)[0].split("  ")[1].strip() if "  " in text else text.strip()


if __name__ == "__main__":
    main()
