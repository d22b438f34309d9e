"""Traces: the steps of an execution, as data for reports and pictures.

A trace is either a schedule, whose steps are numbered in their order, or an execution of the model, whose steps are in
the program order of their threads and have no numbers.
"""

from __future__ import annotations

from enum import StrEnum

from mcheck.base.errors import Span
from mcheck.base.records import dataclass


class StepKind(StrEnum):
    """The kind of a step, which determines its box in a picture."""

    READ = "read"
    WRITE = "write"
    UPDATE = "update"
    FENCE = "fence"
    PROXY_FENCE = "proxy-fence"
    BARRIER = "barrier"
    MBARRIER = "mbarrier"
    ISSUE = "issue"
    WAIT = "wait"


class StepPart(StrEnum):
    """The part of an instruction that a step performs: all of it, or a part at a separate time."""

    EXECUTES = "executes"
    ARRIVES = "arrives"
    """The arrival of a thread at a barrier, before the last one."""
    COPIES = "copies"
    """A memory operation or the signal of an asynchronous operation, in an execution of the model."""
    COMPLETES = "completes"
    """The completion of an asynchronous operation, in a schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """The writer of a value read: an instruction of a thread, or its asynchronous copy."""

    thread: str
    instruction: str
    asynchronous: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """The effect of a read: object and value (``None``: unknown); without ``writer`` it is the initial value.

    ``size`` is the size of the value in bytes, ``unit`` that of an element of the object.
    """

    object: str
    value: int | None
    writer: Writer | None
    size: int = 4
    unit: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """The effect of a write: object and value (``None``: unknown); the rest as in ``Reads``."""

    object: str
    value: int | None
    size: int = 4
    unit: int = 4


@dataclass(frozen=True, slots=True)
class Signals:
    """The completion signal of an asynchronous operation."""


@dataclass(frozen=True, slots=True)
class WaitResult:
    """The result of a test_wait or try_wait; ``None`` if it is unknown."""

    result: bool | None


StepEffect = Reads | Writes | Signals | WaitResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of a trace. ``thread`` is a role or one of its threads. ``number`` is the position in the schedule,
    ``skipped`` the number of steps omitted before it, ``observes`` the numbers of the latest steps of others that
    it is the first of its thread to know of. ``iteration`` names the iteration of the enclosing loops (``k=3``) or, for
    loops without variables, counts executions of the statement (``#4``).
    """

    thread: str
    instruction: str
    kind: StepKind
    span: Span | None = None
    part: StepPart = StepPart.EXECUTES
    effect: StepEffect | None = None
    number: int | None = None
    skipped: int = 0
    observes: tuple[int, ...] = ()
    iteration: str = ""


Trace = tuple[Step, ...]
