"""Drafts: litmus tests in block form as editable objects, roles and statements.

The statements stay text, a line each. A block (``if``, ``for``) is the lines from its opening brace to its closing one,
so that what removes or moves a statement has to take the whole block: ``units`` says where statements begin and end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

MODELS = ("ptx-9.0",) * 7 + ("ptx-9.3", "ptx-9.5")
"""What random programs are of, as often as it stands here."""

_ROLE = re.compile(r"(\w+)@([^{]+?) *\{")


@dataclass(frozen=True, slots=True)
class Role:
    """A role: where its threads are placed, and what they execute."""

    name: str
    place: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """A program. ``shown`` are the terms of its ``locations`` line, ``condition`` its last line (or nothing)."""

    name: str
    model: str
    objects: tuple[str, ...]
    roles: tuple[Role, ...]
    shown: tuple[str, ...] = ()
    condition: str = ""

    def text(self) -> str:
        """The program as a file."""
        lines = [f"PTX {self.name}"]
        if self.model:
            lines.append(f"model {self.model}")
        lines += ["{", *(f"  {text}" for text in self.objects), "}"]
        for role in self.roles:
            lines += [f"{role.name}@{role.place} {{", *(f"  {line}" for line in role.lines), "}"]
        if self.shown:
            lines.append(f"locations [{' '.join(f'{term};' for term in self.shown)}]")
        if self.condition:
            lines.append(self.condition)
        return "\n".join(lines) + "\n"

    def with_lines(self, number: int, lines: tuple[str, ...]) -> Draft:
        """The program in which a role executes other statements."""
        roles = list(self.roles)
        roles[number] = replace(roles[number], lines=lines)
        return replace(self, roles=tuple(roles))

    @property
    def size(self) -> int:
        """How many lines all threads execute."""
        return sum(len(role.lines) for role in self.roles)


def units(lines: tuple[str, ...]) -> list[tuple[int, int]]:
    """The statements, as half-open ranges of lines: those inside a block as well as the block itself."""
    found: list[tuple[int, int]] = []
    opened: list[int] = []
    for k, line in enumerate(lines):
        if line.startswith("}"):
            start = opened.pop()
            if line.endswith("{"):  # an else: the whole block is one statement
                opened.append(start)
            else:
                found.append((start, k + 1))
        elif line.endswith("{"):
            opened.append(k)
        else:
            found.append((k, k + 1))
    return sorted(found)


def read(text: str) -> Draft:
    """The draft of a file in block form whose roles begin and end at the margin, as ``Draft.text`` writes them."""
    name, model, condition = "draft", "", ""
    objects: list[str] = []
    roles: list[Role] = []
    shown: tuple[str, ...] = ()
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("PTX "):
            name = line[4:].strip()
        elif line.startswith("model "):
            model = line[6:].strip()
        elif line == "{":
            objects += _block(lines)
        elif role := _ROLE.fullmatch(line):
            roles.append(Role(role[1], role[2], tuple(_block(lines))))
        elif line.startswith("locations ["):
            shown = tuple(term.strip() for term in line[len("locations [") : -1].split(";") if term.strip())
        elif line.startswith(("exists", "~exists", "forall")):
            condition = line
    return Draft(name, model, tuple(objects), tuple(roles), shown, condition)


def _block(lines: Iterator[str]) -> list[str]:
    found: list[str] = []
    for line in lines:
        if line == "}":
            break
        if line.strip():
            found.append(line.strip())
    return found
