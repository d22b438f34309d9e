"""The instructions of a program as they are written: what an edit removes or replaces."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.litmus import parse_written
from mcheck.frontend.litmus.source import Source
from mcheck.frontend.litmus.statements import Body, For, If, Statement, Step
from mcheck.frontend.ptx.cursor import COMMENTS
from mcheck.frontend.ptx.module import Function, Module

_PARTS = re.compile(
    r"(?P<head>(?:@\s*!?\s*%?[\w$]+\s+)?(?:await\s+)?)(?P<opcode>[A-Za-z][\w.:]*)(?P<operands>.*)", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Instruction:
    """The instruction at ``start`` to ``end`` of a text, its guard and semicolon included; a cell of a table has none.

    ``owner`` is the role, the column or the function that it stands in. ``source`` is where a module's was compiled
    from, with the calls that it was inlined into.
    """

    start: int
    end: int
    line: int
    text: str
    owner: str
    source: tuple[Span, ...] = ()

    @property
    def awaits(self) -> bool:
        """Whether it blocks until its result is as it should be (``await`` of sketches)."""
        return _awaits(self.text)

    @property
    def opcode(self) -> tuple[str, ...]:
        """The parts of its opcode."""
        return tuple(opcode_of(self.text).split("."))

    @property
    def operands(self) -> str:
        """What stands behind the opcode, without the semicolon."""
        return _matched(self.text)["operands"].removesuffix(";").strip()

    def with_opcode(self, opcode: Iterable[str], operands: str | None = None) -> str:
        """Its text with another opcode, and other operands if they are given."""
        found = _matched(self.text)
        rest = found["operands"] if operands is None else f" {operands};" if self.text.endswith(";") else f" {operands}"
        return found["head"] + ".".join(opcode) + rest


def unguarded(text: str) -> str:
    """An instruction without its guard."""
    found = _matched(text)
    return ("await " if _awaits(text) else "") + found["opcode"] + found["operands"]


def opcode_of(text: str) -> str:
    """The opcode of an instruction, without its guard and its operands."""
    return _matched(text)["opcode"]


def _awaits(text: str) -> bool:
    return _matched(text)["head"].endswith(("await ", "await\n", "await\t"))


def _matched(text: str) -> re.Match[str]:
    found = _PARTS.fullmatch(text)
    assert found is not None, f"the parser has taken {text!r} for an instruction"
    return found


def find_test_instructions(text: str, path: str) -> tuple[Instruction, ...]:
    """The instructions of a litmus test or a sketch, in the order of the text; raises ``McheckError``."""
    written = parse_written(text, path)
    end_of = _ends(written.source, "|;" if written.table else ";", kept=not written.table)
    starts: dict[int, tuple[Span, str]] = {}
    offset_of = _offsets(written.source.clean)
    for owner, body in written.bodies.items():
        for step in _steps(body):
            span = step.span or step.op.span
            if span is not None and step.op.text:
                starts.setdefault(offset_of(span), (span, owner))
    return tuple(
        Instruction(start, end := end_of(start), span.line, written.source.clean[start:end], owner)
        for start, (span, owner) in sorted(starts.items())
    )


def find_module_instructions(text: str, module: Module, entries: Collection[str]) -> tuple[Instruction, ...]:
    """The instructions of kernels of a module and of its functions, in the order of the text."""
    source = Source(text, module.path, COMMENTS)
    end_of, offset_of = _ends(source, ";", kept=True), _offsets(source.clean)
    found: dict[int, Instruction] = {}
    for function in module.functions.values():
        if function.name in entries or not function.entry:
            for instruction in _of_function(function, source, offset_of, end_of):
                found.setdefault(instruction.start, instruction)
    return tuple(found[start] for start in sorted(found))


def _of_function(
    function: Function, source: Source, offset_of: Callable[[Span], int], end_of: Callable[[int], int]
) -> Iterator[Instruction]:
    for statement in function.body:
        start = offset_of(statement.span)
        end = end_of(start)
        yield Instruction(
            start,
            end,
            statement.span.line,
            source.clean[start:end],
            function.name,
            statement.source.chain if statement.source is not None else (),
        )


def _steps(statement: Statement) -> Iterator[Step]:
    match statement:
        case Step():
            yield statement
        case Body():
            for each in statement.steps:
                yield from _steps(each)
        case For():
            yield from _steps(statement.body)
        case If():
            yield from _steps(statement.then)
            yield from _steps(statement.otherwise)


def _offsets(text: str) -> Callable[[Span], int]:
    """Maps a location to its offset in the text."""
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    return lambda span: starts[span.line - 1] + span.column - 1


def _ends(source: Source, stops: str, *, kept: bool) -> Callable[[int], int]:
    """Maps the start of an instruction to its end: the next of ``stops``, which is ``kept`` as part of it or not."""
    found = [match.start() for match in re.finditer(f"[{re.escape(stops)}]", source.clean)]

    def end(start: int) -> int:
        k = bisect_right(found, start)
        stop = found[k] if k < len(found) else len(source.clean)
        return stop + 1 if kept else start + len(source.clean[start:stop].rstrip())

    return end
