"""Findings: an error in some execution of a program, with its accesses, fix and section."""

from __future__ import annotations

import re
from dataclasses import field

from mcheck.base.errors import Span
from mcheck.base.phrase import OnlyIf, Phrase, plain
from mcheck.base.records import dataclass
from mcheck.findings.fix import Fixes
from mcheck.findings.trace import Trace
from mcheck.findings.waits import Wait
from mcheck.ir.memory import CELL, TENSOR_MEMORY, TENSOR_ROW

KINDS = ("race", "undefined", "deadlock")
SEVERITIES = ("error", "review", "advice")
DOCUMENT = "PTX ISA"
_MBARRIER = re.compile(r"(?:^|\s)(?:cp\.async\.)?mbarrier\.([a-z_]+)")
_ACTIONS = {"test_wait": "wait", "try_wait": "wait", "arrive_drop": "arrive"}
_REFERENCE = re.compile(r"(?P<document>PTX ISA(?: \d+\.\d+)?),?:? (?:sections? )?(?P<section>.+)")


@dataclass(frozen=True, slots=True)
class Specification:
    """The source of a rule: the document, ``PTX ISA 9.0``, and one or more of its sections."""

    document: str
    section: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """An access of a finding; ``bytes`` is the half-open range inside ``object``. ``asynchronous``: by an operation
    outside program order. ``strong``: it can race with another strong access of the same bytes only because of the
    scopes (8.7). ``source`` is the source location that the instruction was compiled from, followed by those of the
    calls that it was inlined into. ``value`` says of a load in a module if its value is ``unused``, only ``chosen``
    or left by an instruction, or ``left`` by this thread, while others store what they make of it.
    """

    thread: str
    instruction: str
    span: Span | None = field(default=None)
    object: str = ""
    bytes: tuple[int, int] = (0, 0)
    proxy: str = "generic"
    access: str = "read"
    asynchronous: bool = False
    strong: bool = False
    source: tuple[Span, ...] = ()
    value: str = ""

    @property
    def path(self) -> str | None:
        """The file of the instruction, if it has one."""
        return self.span.path if self.span else None

    @property
    def line(self) -> int | None:
        """The line of the instruction, 1-based."""
        return self.span.line if self.span else None

    @property
    def column(self) -> int | None:
        """The column of the instruction, 1-based."""
        return self.span.column if self.span else None

    @property
    def action(self) -> str:
        """The kind of access as text: ``read``, ``write``, or the operation on an mbarrier."""
        named = _MBARRIER.search(self.instruction)
        return _ACTIONS.get(named[1], named[1].replace("_", "-")) if named else self.access

    @property
    def place(self) -> str:
        """The bytes accessed, as text; empty for an instruction without an access."""
        return format_range(self.object, *self.bytes) if self.object else ""


def _cta_of(thread: str) -> str:
    """The CTA in the name of a thread, or what stands for it; empty if the name has none."""
    return thread if thread.startswith("CTA ") else thread.partition("[")[0].rpartition(".")[0]


def format_range(label: str, start: int, end: int) -> str:
    """A range as text: ``buf@0[bytes 0..16]``, end excluded; for tensor memory a lane and columns."""
    if label.startswith(TENSOR_MEMORY):
        lane, first = divmod(start, TENSOR_ROW)
        return f"{label}[lane {lane}, columns {first // CELL}..{(first + end - start) // CELL}]"
    return f"{label}[bytes {start}..{end}]"


@dataclass(frozen=True, slots=True)
class CompiledLine:
    """A line of a compiled module, and the source location that it was compiled from, followed by those of the calls
    that it was inlined into. ``before`` and ``behind``: how many of the outermost calls contain the nearest statement
    before it, or behind it, that synchronises: what synchronises at the beginning, or the end, of any call inside of
    these does as much as beside the line.
    """

    line: int
    source: tuple[Span, ...] = ()
    before: int = 0
    behind: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding. ``code`` is explained by ``mcheck explain``; ``said`` is the message; ``fixes`` are what to do;
    ``section`` the rule's source; ``lines`` has the source locations of the lines of a compiled module that the message
    and the fix mention; ``waits`` are those of a deadlock; ``gap`` are the statements behind each of which the first
    step of the fix mends a race, as far as that is known: of those that are at one place of the function that makes
    both accesses, one, with the source inside of that function.
    """

    code: str
    kind: str
    severity: str
    said: Phrase
    accesses: tuple[Access, ...] = ()
    fixes: Fixes = ()
    section: str = ""
    trace: Trace = ()
    lines: tuple[CompiledLine, ...] = ()
    waits: tuple[Wait, ...] = ()
    gap: tuple[CompiledLine, ...] = ()

    @property
    def message(self) -> str:
        """What is wrong, as text in terms of the program."""
        return plain(self.said)

    @property
    def conditions(self) -> tuple[OnlyIf, ...]:
        """What the finding depends on, of what is not known."""
        return tuple(part for part in self.said if isinstance(part, OnlyIf))

    @property
    def missing(self) -> str:
        """The fixes in words."""
        from mcheck.findings.fix_words import text_of

        return text_of(self.fixes)

    @property
    def between_ctas(self) -> bool:
        """Whether threads of several CTAs take part."""
        return len({_cta_of(access.thread) for access in self.accesses}) > 1

    @property
    def spec(self) -> Specification:
        """Document and section of the rule; the default document is the PTX ISA."""
        found = _REFERENCE.match(self.section)
        return Specification(found["document"], found["section"]) if found else Specification(DOCUMENT, self.section)
