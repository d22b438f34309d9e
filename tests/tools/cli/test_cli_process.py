"""The command as a process: what it costs to start, what it imports, terminals, pipes, signals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

MCHECK = [sys.executable, "-m", "mcheck"]
ROOT = Path(__file__).parents[3]


def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MCHECK, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=ROOT,
        **options,  # type: ignore[call-overload]
    )


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (
            ["--help"],
            {"rich", "numpy", "z3", "networkx", "json", "mcheck.ir", "mcheck.answers", "mcheck.frontend.litmus"},
        ),
        (
            ["run", "TEST", "--model", "ptx-7.5"],
            {
                "rich",
                "numpy",
                "z3",
                "networkx",
                "multiprocessing",
                "difflib",
                "fractions",
                "shutil",
                "mcheck.report.finding",
                "mcheck.checking.policy.every_n",
                "mcheck.frontend.litmus.parametric.periodicity",
                "mcheck.engines.protocol",
                "pickle",
                "mcheck.frontend.litmus.blocks",
                "mcheck.events.emit_async",
                "mcheck.isa.families.bulk",
                "mcheck.isa.families.wgmma",
            },
        ),
        (
            ["check", "tests/simt/corpus/cuda/ring_bulk.ptx"],
            {
                "rich",
                "z3",
                "networkx",
                "numpy.ma",
                "mcheck.answers.advice.races",
                "mcheck.checking.modules.cluster_groups",
                "mcheck.checking.modules.launches.launch_sequence",
                "mcheck.checking.modules.pairs.drawn_grid",
                "mcheck.engines.protocol.fix_search.advice",
                "mcheck.simt.grid.looks.others_look",
            },
        ),
    ],
)
def test_heavy_modules_are_not_imported(litmus: Callable, arguments: list[str], absent: set[str]) -> None:
    path = str(litmus("MP"))
    arguments = [path if argument == "TEST" else argument for argument in arguments]
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "mcheck", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=ROOT,
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "mcheck.tools.cli.main" in imported
    assert absent & imported == set()


def test_few_modules_are_imported(litmus: Callable, tmp_path: Path) -> None:
    """The second time: the first one compiles the model."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-X", "importtime", "-m", "mcheck", "run", str(litmus("MP")), "--model", "ptx-7.5"]
    told = [
        subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=True, cwd=ROOT, env=environment
        ).stderr
        for _ in range(2)
    ]
    first, second = ({line.rpartition("|")[2].strip() for line in text.splitlines()} for text in told)
    own = {name for name in second if name.startswith("mcheck")}
    assert "mcheck.cat.parser" in first
    assert not {"mcheck.cat.parser", "pathlib", "hashlib"} & second
    assert len(own) <= 215
    assert len(second) <= 345


def ask_in_python(script: str, litmus: Path) -> list[str]:
    """Run a script that finds a small test as its argument, and return what it prints on standard error."""
    done = subprocess.run(
        [sys.executable, "-c", script, litmus], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT
    )
    return done.stderr.split()


def test_little_is_searched_for_garbage(litmus: Callable) -> None:
    script = """
import atexit, gc, sys
counted = []
def report():
    print(len(counted), gc.get_freeze_count() > 10_000, file=sys.stderr)
atexit.register(report)
import mcheck.tools.cli.main
from mcheck.__main__ import main
gc.callbacks.append(lambda phase, info: counted.append(phase) if phase == "start" else None)
sys.argv[1:] = ["run", sys.argv[1], "--model", "ptx-7.5"]
main()
"""
    collections, frozen = ask_in_python(script, litmus("MP"))
    assert int(collections) == 0
    assert frozen == "True"


def test_garbage_is_collected_more_often_after_the_first_time(litmus: Callable) -> None:
    script = """
import gc, sys
from mcheck.__main__ import delay_collections
from mcheck.engines.protocol.gc_control import collect_rarely
delay_collections()
delay_collections()
seen = [gc.get_threshold()[0]]
with collect_rarely():
    seen.append(gc.get_threshold()[0])
    gc.collect(0)
    seen.append(gc.get_threshold()[0])
seen.append(gc.get_threshold()[0])
gc.collect(0)
seen.append(gc.get_threshold()[0])
print(*seen, len(gc.callbacks), file=sys.stderr)
"""
    assert ask_in_python(script, litmus("MP")) == ["250000", "400000", "400000", "250000", "50000", "0"]


def test_few_methods_of_data_classes_are_compiled(litmus: Callable) -> None:
    script = """
import sys
import mcheck.base.records as records
compiled, execute = [], records._executed
def note(*given):
    compiled.append(given)
    return execute(*given)
records._executed = note
from mcheck.tools.cli.main import main
main(["run", sys.argv[1], "--model", "ptx-7.5"])
print(len(compiled), file=sys.stderr)
"""
    (count,) = ask_in_python(script, litmus("MP"))
    assert int(count) < 40


def test_data_classes_are_made_the_fast_way(litmus: Callable) -> None:
    script = """
import dataclasses, sys
names, process = [], dataclasses._process_class
def note(cls, *rest, **more):
    names.append(f"{cls.__module__}.{cls.__qualname__}")
    return process(cls, *rest, **more)
dataclasses._process_class = note
from mcheck.tools.cli.main import main
main(["run", sys.argv[1], "--model", "ptx-7.5"])
print(*names, file=sys.stderr)
"""
    assert ask_in_python(script, litmus("MP")) == ["mcheck.base.records._Like"]


def test_the_same_text_twice(litmus: Callable) -> None:
    paths = [litmus(name) for name in ("a", "b", "c")]
    outputs = {
        run("run", *paths, "--model", "ptx-7.5", "-v", env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


@pytest.mark.daily(days=3, least=0)
def test_the_same_reason_twice() -> None:
    """Several circles of words may be why an engine does not know; which is named does not depend on the run."""
    path = ROOT / "litmus" / "bulk" / "bulk-relaxed-wait-fence-then-restricted-acquire.litmus"
    outputs = {
        run("run", path, "--engine", "protocol", env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_a_reader_that_leaves_early(litmus: Callable) -> None:
    paths = " ".join(str(litmus(f"t{number}")) for number in range(30))
    command = f"{sys.executable} -m mcheck run {paths} --model ptx-7.5 -v | head -n 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT)
    assert done.stdout.startswith("ok")
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_a_terminal_gets_colours(litmus: Callable) -> None:
    pty = pytest.importorskip("pty", reason="this system has no terminals")
    master, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [*MCHECK, "run", str(litmus("MP")), "--model", "ptx-7.5"],
        stdout=terminal,
        stderr=terminal,
        stdin=subprocess.DEVNULL,
        env=environment,
        cwd=ROOT,
    )
    os.close(terminal)
    written = b""
    try:
        while part := os.read(master, 4096):
            written += part
    except OSError:
        pass  # Linux says so when the other side is closed
    assert process.wait(60) == 0
    os.close(master)
    text = written.decode()
    assert "\x1b[32mok" in text
    assert re.search(r"\d\.\d\d s\r\n$", text), "the time stands on standard error"


def test_an_interrupt_ends_quietly(litmus: Callable, tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    script.write_text(
        "import sys, time\n"
        "import mcheck.engines.explicit.engine as engine\n"
        "from mcheck.tools.cli.main import main\n"
        "def answer(*arguments, **options):\n"
        "    open(sys.argv[-1], 'w').close()\n"
        "    time.sleep(60)\n"
        "engine.answer = answer\n"
        "sys.exit(main(sys.argv[1:-1]))\n"
    )
    started = tmp_path / "started"
    command = [sys.executable, script, "run", litmus("a"), litmus("b"), "--model", "ptx-7.5", "--jobs", "2", started]
    process = subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    deadline = time.monotonic() + 30
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.strip() == "interrupted"
