"""The outline of a program in block form: its roles, blocks and statements, and the gaps between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from mcheck.base.records import dataclass

_HIDDEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"[^\"\n]*\"", re.DOTALL)
_ROLE = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*@(?P<place>[^{}|;]*)\{")
_HEADER = re.compile(r"(?:for|if|while|else)\b[^{};]*\{")
_LABEL = re.compile(r"[A-Za-z_$][\w$]*\s*:(?!:)")
_GUARD = re.compile(r"@!?%?\w+\s+")
_CONSTANT = re.compile(r"\bconst\s+([^;]*);")
_RANGE = re.compile(r"\b(gpu|cluster|cta|warp|warpgroup|lane)\s+([^,]+?)\s*(?=,|$)")


@dataclass(frozen=True, slots=True)
class Block:
    """A block ``for``, ``if``, ``else`` or ``while``, from its first character to behind its closing brace."""

    head: str
    start: int
    opening: int
    end: int

    @property
    def variable(self) -> str | None:
        """The variable of a loop."""
        found = re.match(r"for\s+(\w+)\s+in\b", self.head)
        return found[1] if found else None


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement with its semicolon, or a label; ``blocks`` are those around it, the outermost first."""

    line: int
    start: int
    end: int
    guard: str
    instruction: str
    role: int
    blocks: tuple[Block, ...]

    @property
    def text(self) -> str:
        """The guard and the instruction."""
        return self.guard + self.instruction


@dataclass(frozen=True, slots=True)
class Gap:
    """A place for a statement: before the one at ``at``, or before the brace that closes a block."""

    line: int
    at: int
    indent: str
    alone: bool
    role: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Role:
    """A role: its name, and its place as it is written."""

    name: str
    place: str

    @property
    def ranges(self) -> dict[str, str]:
        """The text of each coordinate."""
        return {name: value.strip() for name, value in _RANGE.findall(self.place)}


@dataclass(frozen=True)
class Outline:
    """The outline of ``text``."""

    text: str
    shown: str
    roles: tuple[Role, ...]
    statements: tuple[Statement, ...]
    gaps: tuple[Gap, ...]

    @cached_property
    def constants(self) -> dict[str, int]:
        """The constants with known values."""
        values: dict[str, int] = {}
        for part in ",".join(_CONSTANT.findall(self.shown)).split(","):
            name, _, value = part.partition("=")
            number = evaluate(value, values)
            if number is not None:
                values[name.strip()] = number
        return values

    def line_of(self, at: int) -> int:
        """The 1-based line of an offset."""
        return self.text.count("\n", 0, at) + 1

    def at_lines(self, lines: frozenset[int]) -> tuple[Statement, ...]:
        """The statements that begin at these lines."""
        return tuple(each for each in self.statements if each.line in lines)


def outline(text: str) -> Outline | None:
    """The outline of a program in block form; none of another text."""
    shown = _HIDDEN.sub(lambda hidden: re.sub(r"[^\n]", " ", hidden[0]), text)
    at = _closing(shown, shown.find("{"))
    reader = _Reader(text, shown)
    while at is not None and (found := _ROLE.match(shown, at)):
        reader.roles.append(Role(found["name"], found["place"].strip()))
        at = reader.read_block(found.end(), ())
    if not reader.roles:
        return None
    gaps = tuple(sorted(reader.gaps, key=lambda gap: gap.at))
    return Outline(text, shown, tuple(reader.roles), tuple(reader.statements), gaps)


class _Reader:
    """Reads blocks, and collects what is in them."""

    def __init__(self, text: str, shown: str) -> None:
        self.text = text
        self.shown = shown
        self.roles: list[Role] = []
        self.statements: list[Statement] = []
        self.gaps: list[Gap] = []

    def read_block(self, at: int, blocks: tuple[Block, ...]) -> int | None:
        """Reads up to the closing brace; the offset behind it, or none if something is not closed."""
        indent = None
        while True:
            at = _skip(self.shown, at)
            if at >= len(self.shown):
                return None
            if self.shown[at] == "}":
                self._add_gap(at, blocks, indent or self._indent(at) + "  ")
                return at + 1
            indent = indent or self._indent(at)
            if found := _HEADER.match(self.shown, at):
                end = _closing(self.shown, found.end() - 1)
                if end is None:
                    return None
                if not found[0].startswith("else"):
                    self._add_gap(at, blocks, self._indent(at))
                block = Block(found[0][:-1].strip(), at, found.end(), end)
                self.read_block(found.end(), (*blocks, block))
                at = end
                continue
            if label := _LABEL.match(self.shown, at):
                self._add_statement(at, label.end(), blocks)
                at = label.end()
                continue
            end = self.shown.find(";", at) + 1
            if not end:
                return None
            self._add_statement(at, end, blocks)
            at = end

    def _add_statement(self, at: int, end: int, blocks: tuple[Block, ...]) -> None:
        guard = _GUARD.match(self.shown, at)
        start = guard.end() if guard else at
        line = self.text.count("\n", 0, at) + 1
        if self.shown[at] != "." and self.shown[end - 1] == ";":
            self._add_gap(at, blocks, self._indent(at))
        self.statements.append(
            Statement(line, at, end, self.shown[at:start], self.shown[start:end], len(self.roles) - 1, blocks)
        )

    def _add_gap(self, at: int, blocks: tuple[Block, ...], indent: str) -> None:
        begin = self.text.rfind("\n", 0, at) + 1
        alone = not self.text[begin:at].strip()
        line = self.text.count("\n", 0, at) + 1
        self.gaps.append(Gap(line, at, indent, alone, len(self.roles) - 1, blocks))

    def _indent(self, at: int) -> str:
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip())]


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _closing(text: str, opening: int) -> int | None:
    """The offset behind the brace that closes the one at ``opening``."""
    depth = 0
    for at in range(max(opening, 0), len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if text[at] == "}" and depth == 0:
            return at + 1
    return None


def evaluate(text: str, names: dict[str, int]) -> int | None:
    """The value of a sum or product of numbers and names, if all are known."""
    tokens = re.findall(r"0[xX][0-9a-fA-F]+|\d+|[A-Za-z_]\w*|<<|>>|[-+*/%&|^()]|\S", text)
    try:
        value, rest = _sum(tokens, names, 0)
    except (LookupError, ValueError, ZeroDivisionError):
        return None
    return value if rest == len(tokens) else None


def _sum(tokens: list[str], names: dict[str, int], at: int) -> tuple[int, int]:
    value, at = _product(tokens, names, at)
    while at < len(tokens) and tokens[at] in "+-":
        right, after = _product(tokens, names, at + 1)
        value, at = (value + right if tokens[at] == "+" else value - right), after
    return value, at


def _product(tokens: list[str], names: dict[str, int], at: int) -> tuple[int, int]:
    value, at = _factor(tokens, names, at)
    while at < len(tokens) and tokens[at] in "*/%":
        right, after = _factor(tokens, names, at + 1)
        value = value * right if tokens[at] == "*" else value // right if tokens[at] == "/" else value % right
        at = after
    return value, at


def _factor(tokens: list[str], names: dict[str, int], at: int) -> tuple[int, int]:
    first = tokens[at]
    if first == "(":
        value, at = _sum(tokens, names, at + 1)
        if tokens[at] != ")":
            raise ValueError
        return value, at + 1
    return (int(first, 0) if first[0].isdigit() else names[first]), at + 1


def enclosing_loops(blocks: tuple[Block, ...]) -> Iterator[Block]:
    """The loops around a place, the innermost first."""
    return (block for block in reversed(blocks) if block.variable is not None)
