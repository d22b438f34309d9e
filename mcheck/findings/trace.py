"""What happened in an execution, step by step: data that reports put into words and pictures draw.

A trace is either a schedule, whose steps are numbered as they came, or an execution of the model, whose steps
stand in the program order of their threads and have no numbers.
"""

from __future__ import annotations

from enum import StrEnum

from mcheck.base.errors import Span
from mcheck.base.records import dataclass


class StepKind(StrEnum):
    """What an instruction is to an execution; the kinds of boxes in a picture."""

    READ = "read"
    WRITE = "write"
    UPDATE = "update"
    FENCE = "fence"
    PROXY_FENCE = "proxy-fence"
    BARRIER = "barrier"
    MBARRIER = "mbarrier"
    ISSUE = "issue"
    WAIT = "wait"


class Happening(StrEnum):
    """What of an instruction happens: all of it, or a part at a time of its own."""

    EXECUTES = "executes"
    ARRIVES = "arrives"
    """A thread's arrival at a barrier, where the others come later."""
    COPIES = "copies"
    """A memory operation or the signal of an asynchronous operation, in an execution of the model."""
    COMPLETES = "completes"
    """The completion of an asynchronous operation, in a schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Whose write is read: an instruction of a thread, or its copy."""

    thread: str
    instruction: str
    asynchronous: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """The object and the value (``None``: not known) that a read returns; no ``writer`` is the initial value.

    ``size`` are the bytes of the value, ``unit`` those of an element of the object.
    """

    object: str
    value: int | None
    writer: Writer | None
    size: int = 4
    unit: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """The object and the value (``None``: not known) that is written; the rest as for ``Reads``."""

    object: str
    value: int | None
    size: int = 4
    unit: int = 4


@dataclass(frozen=True, slots=True)
class Signals:
    """The completion signal of an asynchronous operation."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What a poll of an mbarrier returns; ``None`` if it is not known."""

    result: bool | None


Effect = Reads | Writes | Signals | Answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """``thread`` is a role, or one of its threads. ``number`` is the place in the schedule, ``skipped`` how many steps
    before it are left out. ``turn`` is the round of the loops around it (``k=3``) or, where loops have no variables,
    how often the thread has come to the statement (``#4``).
    """

    thread: str
    instruction: str
    kind: StepKind
    span: Span | None = None
    happening: Happening = Happening.EXECUTES
    effect: Effect | None = None
    number: int | None = None
    skipped: int = 0
    turn: str = ""


Trace = tuple[Step, ...]
