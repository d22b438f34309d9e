"""What a command leaves behind when it is stopped, and what it says when the system refuses something.

    .venv/bin/python -m benchmarks.faults            prints the table of docs/faults.md
    .venv/bin/python -m benchmarks.faults --only doc  some rows

A signal is sent to the command alone (not to its workers) while it reads a pipe that nobody writes to, and while its
engines are at work on a test that they cannot finish. A second later no process of its session may be alive and nothing
may lie in its folder that was not there before.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
MCHECK = (sys.executable, "-m", "mcheck")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
SAID = ("error", "unknown", "interrupted", "not all states are known")
"""How the line that is quoted begins."""
PATIENCE = 1.0
"""Seconds after the end of a command in which everything of it has to be gone."""

SMALL = "PTX small\n{ x=0; }\n P0@cta 0,gpu 0 ;\n st.weak x, 1 ;\nexists (x == 1)\n"
COLUMNS = 8
HARD = "\n".join(
    [
        "PTX hard",
        "{ " + " ".join(f"x{k}=0;" for k in range(COLUMNS)) + " }",
        " | ".join(f"P{k}@cta {k},gpu 0" for k in range(COLUMNS)) + " ;",
        *(" | ".join(f"atom.relaxed.gpu.add r{k}, x{k}, 1" for _ in range(COLUMNS)) + " ;" for k in range(COLUMNS)),
        "exists (x0 == 1)",
        "",
    ]
)
"""More executions than anybody can list one by one."""
LOOP = "PTX loop\n{ .global .u32 x; }\nP@cta 0 { mov.u32 r0, 0; L: add.u32 r0, r0, 1; bra L; }\n"
MODULE = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry run(.param .u64 out)
.reqntid 64, 1, 1
{
\t.reg .pred %p<2>;
\t.reg .b32 %r<3>;
\t.reg .b64 %rd<2>;
\t.shared .b32 count;
\tld.param.u64 %rd1, [out];
\tmov.u32 %r1, count;
\tmov.u32 %r2, %tid.x;
\tsetp.eq.u32 %p1, %r2, 0;
\t@%p1 st.shared.u32 [%r1], 0;
\tbar.sync 0;
\tatom.shared.add.u32 %r2, [%r1], 1;
\tsetp.eq.u32 %p1, %r2, 63;
\t@%p1 st.global.u32 [%rd1], %r2;
\tret;
}
"""
"""Sixty-four threads of which the last to count goes another way: more orders than anybody can go through."""
COMMANDS = {
    "run": ("run", "TEST", "TEST2", "--engine", "explicit", "-o", "report.txt"),
    "check": ("check", "TEST", "TEST2", "--engine", "explicit", "-o", "report.txt"),
    "check, a module": ("check", "MODULE", "--grid", "1", "--param", 'out={"buffer":4}', "-o", "report.txt"),
    "outcomes": ("outcomes", "TEST", "--engine", "explicit", "--timeout", "60", "-o", "report.txt"),
    "outcomes --graph": ("outcomes", "TEST", "--graph", "1", "--timeout", "60", "-o", "picture.svg"),
    "exec": ("exec", "TEST", "--timeout", "60", "-o", "report.txt", "--dump", "x=x.bin"),
    "compare": ("compare", "ptx-9.0", "sc", "TEST", "TEST2", "-o", "report.txt"),
    "doc": ("doc", "TEST", "TEST2", "-o", "site"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One fault: what was done to which command when, how it ended, and what it left behind."""

    fault: str
    command: str
    moment: str
    status: int
    said: str
    left: tuple[str, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as the table shows it."""
        ended = f"signal {-self.status}" if self.status < 0 else str(self.status)
        problems = [line for line in self.said.splitlines() if line.startswith(SAID)]
        said = f"`{problems[0]}`" if problems else ""
        return self.fault, f"`{self.command}`", self.moment, ended, said, ", ".join(self.left) or "nothing"


# --- signals -----------------------------------------------------------------------------------------------


def interrupted(name: str, moment: str, number: signal.Signals) -> Row:
    """The command ``name``, sent a signal while it reads or while its engine is at work."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        words = {"TEST": "test.litmus", "TEST2": "second.litmus", "MODULE": "module.ptx"}
        arguments = [words.get(word, word) for word in COMMANDS[name]]
        test = folder / arguments[1 if name != "compare" else 3]
        if moment == "reading":
            os.mkfifo(test)
        else:
            test.write_text({"exec": LOOP, "check, a module": MODULE}.get(name, HARD))
        (folder / "second.litmus").write_text(SMALL)
        before = set(folder.iterdir())
        process = subprocess.Popen(
            [*MCHECK, *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        at_work(process.pid)
        process.send_signal(number)
        said, _ = process.communicate(timeout=30)
        left = leftovers(process.pid, folder, before)
        return Row(number.name, name, moment, process.returncode, said.strip(), left)


def at_work(session: int) -> None:
    """Returns once the command has started its work: its newest process neither starts up nor computes the start."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = members(session)
        if len(found) > 1 or any(seconds > 1.5 for seconds in found.values()):
            break
        time.sleep(0.05)
    time.sleep(0.3)


def members(session: int) -> dict[int, float]:
    """The living processes of a session, with the seconds of processor that each has had."""
    tick = os.sysconf("SC_CLK_TCK")
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] not in "ZX":
                found[int(entry.name)] = (int(fields[11]) + int(fields[12])) / tick
    return found


def leftovers(session: int, folder: Path, before: set[Path]) -> tuple[str, ...]:
    """The processes and files that are still there when the patience is over."""
    deadline = time.monotonic() + PATIENCE
    while True:
        processes = [f"process {pid}" for pid in members(session)]
        files = sorted(path.name for path in set(folder.iterdir()) - before)
        if not (processes or files) or time.monotonic() > deadline:
            return (*processes, *files)
        time.sleep(0.02)


# --- what the system refuses ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refusal:
    """A fault of the surroundings, as a line of the shell, ``$M`` being the command."""

    fault: str
    command: str
    line: str


REFUSALS = (
    Refusal("full disk under standard output", "run", "$M run small.litmus > /dev/full"),
    Refusal("full disk under standard output", "models", "$M models ptx-9.0 > /dev/full"),
    Refusal("full disk under -o", "run", "$M run small.litmus -o /dev/full"),
    Refusal("full disk under --dump", "exec", "$M exec small.litmus --dump x=/dev/full"),
    Refusal("full disk under standard error", "run", "$M run absent.litmus 2> /dev/full"),
    Refusal("closed standard output", "run", "$M run small.litmus >&-"),
    Refusal("closed standard output, with -o", "run", "$M run small.litmus -o report.txt >&- && rm report.txt"),
    Refusal("all standard streams closed", "check", "$M check small.litmus <&- >&- 2>&-"),
    Refusal("a reader that leaves", "run", "{ $M run small.litmus many -v; echo $? >&2; } | head -n 1"),
    Refusal("a reader that leaves", "explain", "{ $M explain; echo $? >&2; } | head -n 1"),
    Refusal("deleted working directory", "run", "mkdir gone && cd gone && rmdir ../gone && $M run a.litmus"),
    Refusal("deleted working directory", "run", "mkdir g && cd g && rmdir ../g && $M run $OLDPWD/small.litmus -o a"),
    Refusal("deleted working directory", "doc", "mkdir g && cd g && rmdir ../g && $M doc $OLDPWD/small.litmus -o site"),
    Refusal("an endless file", "run", "$M run /dev/zero"),
    Refusal("an endless model", "run", "$M run small.litmus --model /dev/zero"),
    Refusal("an endless table", "run", "$M run --expect /dev/zero"),
    Refusal("an endless array", "exec", "$M exec small.litmus --load x=/dev/zero"),
    Refusal("no more open files", "run", "ulimit -n 8; $M run small.litmus many -q -j 8"),
    Refusal("a file that nobody writes", "run", "$M run pipe.litmus --timeout 1"),
    Refusal("a file that nobody writes", "check, a module", "$M check pipe.ptx --grid 1 --timeout 1"),
    Refusal("a file that nobody writes", "exec", "$M exec pipe.litmus --timeout 1"),
    Refusal("no time", "check, a module", "$M check module.ptx --grid 1 --param 'out={\"buffer\":4}' --timeout 1"),
    Refusal("no time", "exec", "$M exec loop.litmus --timeout 1"),
    Refusal("no memory", "exec", "$M exec loop.litmus --memory 128M"),
    Refusal("no time", "outcomes --graph", "$M outcomes hard.litmus --graph 1 -o x.svg --timeout 1"),
)  # fmt: skip


def refused(refusal: Refusal) -> Row:
    """The command in surroundings that refuse something."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, text in (("small", SMALL), ("hard", HARD), ("loop", LOOP)):
            (folder / f"{name}.litmus").write_text(text)
        (folder / "module.ptx").write_text(MODULE)
        for name in ("pipe.litmus", "pipe.ptx"):
            os.mkfifo(folder / name)
        (folder / "many").mkdir()
        for number in range(20):
            (folder / "many" / f"t{number}.litmus").write_text(SMALL)
        before = set(folder.iterdir())
        process = subprocess.Popen(
            ["sh", "-c", refusal.line],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "M": " ".join(MCHECK)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        out, err = process.communicate(timeout=120)
        status, said = process.returncode, (err or out).strip()
        if "echo $?" in refusal.line:  # the status of the command and not that of its reader
            status, said = int(said.splitlines()[-1]), "\n".join(said.splitlines()[:-1])
        return Row(refusal.fault, refusal.command, "", status, said, leftovers(process.pid, folder, before))


# --- the table ------------------------------------------------------------------------------------------------


def rows(only: str | None = None) -> Iterator[Row]:
    """All faults, or those of one command."""
    for refusal in REFUSALS:
        if only in (None, refusal.command):
            yield refused(refusal)
    for name in COMMANDS:
        for moment in ("reading", "at work"):
            for number in SIGNALS:
                if only in (None, name):
                    yield interrupted(name, moment, number)


def sound(row: Row) -> bool:
    """Whether a fault is told as what it is and nothing is left."""
    return not row.left and row.status != 70 and "Traceback" not in row.said and "internal error" not in row.said


def main() -> int:
    """Prints the table; exit status 1 if a row is not sound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted({*COMMANDS, "models", "explain"}), help="rows of one command")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and its children do
    print("| fault | command | moment | exit status | what it says | what is left |")
    print("|---|---|---|---|---|---|")
    wrong = 0
    for row in rows(options.only):
        wrong += not sound(row)
        print("| " + " | ".join(cell.replace("|", "\\|") for cell in row.cells) + " |", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
