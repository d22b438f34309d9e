"""What goes to a terminal fits it, loses nothing and is coloured; what goes to a pipe is left whole and plain."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcheck.report.lines import fold, plain

ROOT = Path(__file__).parents[3]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COMMANDS = (
    "run litmus/bulk/bulk-ring-one-slot-no-fence.litmus",
    "check litmus/kernels/B01-refill-overtakes-generic-reads.litmus",
    "fences litmus/kernels/B01-refill-overtakes-generic-reads.litmus",
    "fences litmus/bulk/bulk-ring-one-slot.litmus",
    "outcomes litmus/bulk/bulk-ring-one-slot-no-fence.litmus",
    "exec litmus/bulk/bulk-ring-one-slot.litmus",
    "compare ptx-7.5 ptx-9.0 litmus/atomics/Inc+clusters+same-cluster.litmus",
    "models",
    "explain",
    "explain RACE006",
    "run litmus/no-such-file.litmus",
)


def on_terminal(columns: int, *arguments: str, until: Sequence[str] = (), **environment: str) -> str:
    """What a command prints on a terminal that is ``columns`` wide, colours included.

    It is ended when it has printed what all the patterns of ``until`` want, if there are any.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    env |= {"TERM": "xterm-256color", **environment}
    command = [sys.executable, "-m", "mcheck", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        out = b""
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            out += part
            if until and all(re.search(pattern, ESCAPE.sub("", out.decode(errors="replace"))) for pattern in until):
                process.terminate()
                break
    os.close(ours)
    return out.decode().replace("\r\n", "\n")


@pytest.mark.daily
@pytest.mark.parametrize("columns", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("command", COMMANDS)
def test_everything_fits_the_terminal(command: str, columns: int) -> None:
    text = ESCAPE.sub("", on_terminal(columns, *command.split()))
    assert text.strip()
    long = [line for line in text.splitlines() if len(line) > columns]
    assert not long, f"{command}: {long[0]}"


@pytest.mark.daily(days=4)
@pytest.mark.parametrize("command", [COMMANDS[0], COMMANDS[2], "models"])
def test_a_narrow_terminal_loses_nothing(command: str) -> None:
    whole = subprocess.run(
        [sys.executable, "-m", "mcheck", *command.split()], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout
    narrow = re.sub(r"\d\.\d\d s$", "", ESCAPE.sub("", on_terminal(40, *command.split())).strip())
    assert words_of(narrow) == words_of(whole)


def words_of(text: str) -> str:
    """The text without its excerpts, for which an instruction is written out where the line would have to be cut."""
    lines = [line for line in text.splitlines() if not re.match(r" +\d* *\| ", line)]
    return re.sub(r"(\[bytes\d+\.\.\d+\]):[^>]*-->", r"\1-->", "".join("".join(lines).split()))


@pytest.mark.daily(days=4, least=0)
def test_colour_is_for_terminals() -> None:
    command = COMMANDS[0].split()
    assert ESCAPE.search(on_terminal(80, *command))
    assert not ESCAPE.search(on_terminal(80, *command, NO_COLOR="1"))
    assert not ESCAPE.search(on_terminal(80, *command, "--color", "never"))
    piped = [sys.executable, "-m", "mcheck", *command]
    for extra, colored in (([], False), (["--color", "always"], True)):
        done = subprocess.run([*piped, *extra], cwd=ROOT, capture_output=True, text=True, check=False)
        assert bool(ESCAPE.search(done.stdout)) is colored


def test_a_long_suite_has_a_bar_with_counts() -> None:
    """It comes after half a second, which one suite may take less than."""
    suites = ("classic", "bulk", "coherence", "mbarrier", "proxies", "tensor")
    bar, counts = r"\d+/\d+", r"\d+ pass, \d+ fail"
    text = on_terminal(100, "run", *(f"litmus/{suite}" for suite in suites), "-q", until=(bar, counts))
    assert re.search(bar, ESCAPE.sub("", text))
    assert re.search(counts, ESCAPE.sub("", text))


@pytest.mark.daily(days=4, least=0)
@settings(suppress_health_check=[HealthCheck.too_slow])  # it measures the machine
@given(
    st.lists(st.text(st.sampled_from("ab01_:./,*[] ->=\N{HORIZONTAL ELLIPSIS}"), min_size=1), min_size=1, max_size=6),
    st.integers(20, 60),
)
def test_folding_keeps_every_character_in_its_width(parts: list[str], width: int) -> None:
    line = tuple((part, "bold") if k % 2 else part for k, part in enumerate(parts))
    pieces = [plain(piece) for piece in fold(line, width)]
    assert all(len(piece) <= max(width, 20) for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(plain(line).split())
    numbers = re.findall(r"\d+", plain(line))
    if all(len(number) <= width // 3 for number in numbers):
        assert [n for piece in pieces for n in re.findall(r"\d+", piece)] == numbers, "a number is not cut"
