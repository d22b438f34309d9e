"""What all operations have: a source location, a guard."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.ir.expr import Reg


@dataclass(frozen=True, slots=True)
class Guard:
    """The predicate of an instruction, ``@p`` or ``@!p``."""

    reg: Reg
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """Base class of operations: source location, text, guard, section of the PTX ISA."""

    decisive: ClassVar[tuple[str, ...]] = ()
    """The fields whose values must be known before the operation can be executed; others are only passed on."""

    span: Span | None = field(default=None, compare=False)
    text: str = field(default="", compare=False)
    guard: Guard | None = None
    section: str = field(default="", compare=False)
