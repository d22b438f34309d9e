"""A finding: what is wrong in some execution of a program, where, and by which section."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcheck.errors import Span
from mcheck.findings.trace import Trace
from mcheck.program.memory import CELL, TENSOR_MEMORY, TENSOR_ROW

KINDS = ("race", "undefined", "deadlock")
SEVERITIES = ("error", "review", "advice")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One of the accesses of a finding; ``bytes`` is the half-open range inside ``object``. ``asynchronous``: of an
    operation that stands outside program order. ``source`` is the place in the source that the instruction was compiled
    from, and if it was inlined, where, from inside out.
    """

    thread: str
    instruction: str
    span: Span | None = field(default=None)
    object: str = ""
    bytes: tuple[int, int] = (0, 0)
    proxy: str = "generic"
    access: str = "read"
    asynchronous: bool = False
    source: tuple[Span, ...] = ()

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
