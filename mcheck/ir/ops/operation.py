"""What all operations have: a source location, a guard, and facets, which are declared with each class."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.ir.expr import Expr, Reg


@dataclass(frozen=True, slots=True)
class Guard:
    """The predicate of an instruction, ``@p`` or ``@!p``."""

    reg: Reg
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """What operations of a class may do; whether one does may depend on its operands.

    Analyses ask for facets where they mean every operation that has them. ``tests/ir/test_ir_facets.py`` compares
    facets with the events of each operation.
    """

    computes: bool = False
    """Nothing but registers of its thread has to do with it."""
    reads: tuple[str, ...] = ()
    """Operands that say which memory it reads; a reduction reads what it writes, too."""
    writes: tuple[str, ...] = ()
    """Operands that say which memory it writes."""
    copies: bool = False
    """What it writes are bytes that it reads elsewhere in memory."""
    observes: bool = False
    """A register gets what it reads in memory, or the state of a phase."""
    mbarrier: str | None = None
    """The operand with the mbarrier that it works on, or that its completion signals."""
    signals: bool = False
    """It counts in a phase of its mbarrier: an arrival, or bytes that are expected or have come."""
    blocks: bool = False
    """Its thread may wait here for what others do."""
    synchronises: bool = False
    """A barrier: threads wait for each other, which orders memory."""
    converges: bool = False
    """Lanes of a warp wait for each other, which orders no memory."""
    asynchronous: bool = False
    """It is issued only: its accesses, or its signal, are not in program order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """Base class of operations: source location, text, guard, section of the PTX ISA."""

    facets: ClassVar[Facets]
    decisive: ClassVar[tuple[str, ...]] = ()
    """The fields whose values must be known before the operation can be executed; others are only passed on."""

    span: Span | None = field(default=None, compare=False)
    text: str = field(default="", compare=False)
    guard: Guard | None = None
    section: str = field(default="", compare=False)


def mbarrier_of(op: Op) -> Expr | None:
    """The operand with the mbarrier that an operation works on, or signals when it is complete."""
    name = op.facets.mbarrier
    found: Expr | None = None if name is None else getattr(op, name)
    return found
