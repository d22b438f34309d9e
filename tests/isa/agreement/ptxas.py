"""Running NVIDIA's assembler on many instructions at once.

It reports the errors of a module line by line, but in stages: a later stage runs only if the earlier ones found
nothing. So the accused lines are taken out and the rest is asked again until nothing is accused. The last line of every
module is wrong in a way that the last checking stage finds: thousands of instructions are checked and none is ever
compiled, which would take minutes and gigabytes.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from mcheck.base.errors import InternalError
from tests.isa.agreement.sample import COUNT, OBJECTS, REGISTERS

VERSION = "9.5"
"""The PTX version that the modules declare: the newest that forms of the table come from."""

_SENTINEL = "ld.global.u32 ff0, [rd0]"
"""A load of an integer into a floating-point register."""

_ACCUSED = re.compile(r"ptxas \S*, line (\d+); (\w+)\s*: (.*)")


def find() -> Path | None:
    """The assembler: that of the PyPI package if it is installed, else the one on the path, else ``None``."""
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        for candidate in sorted(Path(folder).glob("**/bin/ptxas")):
            return candidate
    found = shutil.which("ptxas")
    return Path(found) if found else None


def _module(lines: Sequence[str], target: str, version: str) -> tuple[str, int]:
    """A module with one instruction per line, and the number of the line before the first."""
    head = [f".version {version}", f".target {target}", ".address_size 64"]
    head += [f".{space} .align 128 .b8 {name}[1024];" for name, space in OBJECTS.items() if space != "shared"]
    head += [".visible .entry k()", "{"]
    head += [f".{space} .align 128 .b8 {name}[1024];" for name, space in OBJECTS.items() if space == "shared"]
    head += [f".reg .{kind} {prefix}<{COUNT}>;" for prefix, kind in REGISTERS.items()]
    return "\n".join([*head, *(f"{line};" for line in (*lines, _SENTINEL)), "L0:", "ret;", "}", ""]), len(head)


def run(ptxas: Path, text: str, options: Sequence[str]) -> str:
    """What the assembler says of a module."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.ptx"
        path.write_text(text)
        command = [str(ptxas), *options, str(path), "-o", str(Path(folder) / "m.o")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    return done.stdout + done.stderr


def _ask(ptxas: Path, lines: Sequence[str], target: str, version: str) -> dict[int, str]:
    """The accused lines, by index, with what is said of them; the sentinel's index is the number of lines."""
    text, offset = _module(lines, target, version)
    said = run(ptxas, text, ("-arch", target, "-O0", "-c"))
    accused: dict[int, str] = {}
    for message in said.splitlines():
        found = _ACCUSED.match(message)
        if found is not None and found[2] in ("error", "fatal"):
            accused.setdefault(int(found[1]) - offset - 1, found[3])
    words = "\n".join(message for message in said.splitlines() if "; warning" not in message)
    if not words.strip():  # it has crashed
        return _find_crash(ptxas, lines, target, version)
    if not accused:
        raise InternalError(f"ptxas accuses no line: {words[:500]}")
    return accused


def _find_crash(ptxas: Path, lines: Sequence[str], target: str, version: str) -> dict[int, str]:
    """What is said of a half of the lines, if the assembler crashes on all of them: 13.5 does on ``_`` as an operand of
    ``multimem.red``.
    """
    if len(lines) < 2:
        return dict.fromkeys(range(len(lines)), "the assembler crashes")
    middle = len(lines) // 2
    first = {k: words for k, words in _ask(ptxas, lines[:middle], target, version).items() if k < middle}
    if first:
        return first
    return {k + middle: words for k, words in _ask(ptxas, lines[middle:], target, version).items()}


AT_ONCE = 500
"""Lines of a module: there are errors that the assembler ends with, so hundreds of runs, which cost by the line."""


def rejected(ptxas: Path, lines: Sequence[str], target: str, version: str = VERSION) -> dict[int, str]:
    """The lines that the assembler rejects in modules of a PTX version, by index, with its words."""
    found: dict[int, str] = {}
    for first in range(0, len(lines), AT_ONCE):
        some = range(first, min(first + AT_ONCE, len(lines)))
        found.update(_rejected(ptxas, lines, some, target, version))
    return found


def _rejected(ptxas: Path, lines: Sequence[str], which: Iterable[int], target: str, version: str) -> dict[int, str]:
    """Those of some lines, which make one module."""
    found: dict[int, str] = {}
    alive = list(which)
    while True:
        accused = _ask(ptxas, [lines[index] for index in alive], target, version)
        hit = {alive[index]: words for index, words in accused.items() if 0 <= index < len(alive)}
        if not hit:
            return found
        found.update(hit)
        alive = [index for index in alive if index not in hit]
