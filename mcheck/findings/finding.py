"""A finding: what is wrong in some execution of a program, where, and by which section."""

from __future__ import annotations

import re
from dataclasses import field

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.findings.trace import Trace
from mcheck.ir.memory import CELL, TENSOR_MEMORY, TENSOR_ROW

KINDS = ("race", "undefined", "deadlock")
SEVERITIES = ("error", "review", "advice")
DOCUMENT = "PTX ISA"
_MBARRIER = re.compile(r"(?:^|\s)(?:cp\.async\.)?mbarrier\.([a-z_]+)")
_DEEDS = {"test_wait": "wait", "try_wait": "wait", "arrive_drop": "arrive"}
_REFERENCE = re.compile(r"(?P<document>PTX ISA(?: \d+\.\d+)?),?:? (?:sections? )?(?P<section>.+)")


@dataclass(frozen=True, slots=True)
class Specification:
    """Where a rule stands: ``PTX ISA 9.0``, and one or more sections of it."""

    document: str
    section: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One of the accesses of a finding; ``bytes`` is the half-open range inside ``object``. ``asynchronous``: of an
    operation that stands outside program order. ``strong``: it races with another strong access of its bytes by its
    scope alone (8.7). ``source`` is the place in the source that the instruction was compiled from, and if it was
    inlined, where, from inside out.
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

    @property
    def path(self) -> str | None:
        """The file of the instruction; None where it stands in none."""
        return self.span.path if self.span else None

    @property
    def line(self) -> int | None:
        """The line of the instruction, counted from 1."""
        return self.span.line if self.span else None

    @property
    def column(self) -> int | None:
        """The column of the instruction, counted from 1."""
        return self.span.column if self.span else None

    @property
    def deed(self) -> str:
        """What is done, for a text: ``read``, ``write``, or what the name of an operation on an mbarrier says."""
        named = _MBARRIER.search(self.instruction)
        return _DEEDS.get(named[1], named[1].replace("_", "-")) if named else self.access

    @property
    def place(self) -> str:
        """The bytes that are accessed; empty where the instruction itself is meant and none of its accesses."""
        return bytes_of(self.object, *self.bytes) if self.object else ""


def bytes_of(label: str, start: int, end: int) -> str:
    """``buf@0[bytes 0..16]``, the end excluded as in every range of the input; of tensor memory a lane and columns."""
    if label.startswith(TENSOR_MEMORY):
        lane, first = divmod(start, TENSOR_ROW)
        return f"{label}[lane {lane}, columns {first // CELL}..{(first + end - start) // CELL}]"
    return f"{label}[bytes {start}..{end}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """``code`` is stable and explained by ``mcheck explain``; ``section`` is the section of the PTX ISA it rests on."""

    code: str
    kind: str
    severity: str
    message: str
    accesses: tuple[Access, ...] = ()
    missing: str = ""
    section: str = ""
    trace: Trace = ()

    @property
    def spec(self) -> Specification:
        """Document and section of the reference; the document may be left out there."""
        found = _REFERENCE.match(self.section)
        return Specification(found["document"], found["section"]) if found else Specification(DOCUMENT, self.section)
