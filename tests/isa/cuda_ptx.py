"""The instructions of NVIDIA's ``cuda::ptx`` headers (package nvidia-cuda-cccl), as lines that the assembler reads.

A header has an inline assembly statement for each form, which names registers by number and gives the constraint of
each: this is a list of forms that shares nothing with the instruction table.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

FAMILIES = {"r": "r", "l": "rd", "h": "rs", "q": "rq", "f": "ff", "d": "fd"}
"""By constraint, the register family of ``tests.isa.agreement``."""
LOCALS = {"pred": "p", "b8": "rs", "b128": "rq"}
"""By type, the family of a register that a statement declares for itself."""
CONSTANTS = (0, 24, 128)
"""Where a constant is wanted, one of these is legal in every form."""

_ASM = re.compile(r"\basm\s*(?:volatile\s*)?\(\s*((?:\"(?:[^\"\\]|\\.)*\"\s*)+)(.*?)\);", re.DOTALL)
_LITERAL = re.compile(r"\"((?:[^\"\\]|\\.)*)\"")
_CONSTRAINT = re.compile(r"\"[=+&]*([a-z])\"\s*\(")
_OWN = re.compile(r"\.reg\s+\.(\w+)\s+([\w, ]+)")


def find_headers() -> Path | None:
    """The folder of the generated headers, if the package is installed."""
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        for found in Path(folder).glob("**/cuda/__ptx/instructions/generated"):
            return found
    return None


@cache
def forms() -> tuple[str, ...]:
    """The distinct instructions, one a line."""
    folder = find_headers()
    files = sorted(folder.glob("*.h")) if folder is not None else ()
    return tuple(dict.fromkeys(line for file in files for line in _instructions(file.read_text())))


def _instructions(text: str) -> Iterator[str]:
    for statement in _ASM.finditer(text):
        template = "".join(_LITERAL.findall(statement[1])).replace(r"\n\t", "\n").replace(r"\n", "\n")
        given = _CONSTRAINT.findall(statement[2])
        own = {
            name.strip(): f"{LOCALS[kind]}{100 + number}"
            for number, (kind, names) in enumerate(_OWN.findall(template))
            for name in names.split(",")
            if kind in LOCALS
        }
        for constant in CONSTANTS if "n" in given else CONSTANTS[:1]:
            for part in re.split(r"[;\n]", re.sub(r"//.*", "", template)):
                line = " ".join(part.split()).removeprefix("{ ").removesuffix(" }")
                if line and line not in "{}" and not line.startswith(".reg"):
                    yield _with_registers(line, given, own, constant)


def _with_registers(line: str, given: list[str], own: dict[str, str], constant: int) -> str:
    def register(place: re.Match[str]) -> str:
        number = int(place[1])
        kind = given[number]
        return str(constant) if kind == "n" else f"{FAMILIES[kind]}{number + 1}"

    placed = re.sub(r"(?<!%)%(\d+)", register, line).replace("%%", "%")
    return re.sub(r"[A-Za-z_]\w*", lambda word: own.get(word[0], word[0]), placed)
