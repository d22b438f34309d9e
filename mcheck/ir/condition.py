"""Final conditions: ``exists``, ``~exists``, ``forall`` over registers and memory."""

from __future__ import annotations

from mcheck.base.records import dataclass


@dataclass(frozen=True, slots=True)
class RegTerm:
    """The final value of a register of a thread; prints as ``label`` (``P0:r0``, ``consumer[3]:r1``)."""

    thread: int
    reg: str
    label: str


@dataclass(frozen=True, slots=True)
class MemTerm:
    """The final value of ``size`` bytes at physical ``address``, read as PTX ``type``; prints as ``label`` (``x``,
    ``buf[3]@1``).
    """

    address: int
    size: int
    type: str
    label: str


@dataclass(frozen=True, slots=True)
class ConstTerm:
    """An integer (a location's name on the right-hand side is its address)."""

    value: int


Term = RegTerm | MemTerm | ConstTerm


@dataclass(frozen=True, slots=True)
class Compare:
    """``op`` is one of ``== != < <= > >=``."""

    op: str
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Formula


@dataclass(frozen=True, slots=True)
class Truth:
    value: bool = True


Formula = Compare | And | Or | Not | Truth


@dataclass(frozen=True, slots=True)
class Notation:
    """How the condition writes a term (``1:r0`` for the one labelled ``P1:r0``), and whether the numbers beside it"""

    name: str
    hexadecimal: bool = False

    def number(self, value: int) -> str:
        """A value as the condition would write it; a negative one keeps its sign, as in comparisons."""
        return hex(value) if self.hexadecimal and value >= 0 else str(value)


@dataclass(frozen=True, slots=True)
class Condition:
    """``kind`` is ``exists``, ``~exists``, ``forall`` or ``none``; ``text`` as written; ``filter`` restricts the
    executions.

    ``locations`` are further terms to show in the states, ``notation`` by label how terms are written.
    """

    kind: str
    formula: Formula = Truth()
    text: str = ""
    filter: Formula = Truth()
    locations: tuple[Term, ...] = ()
    notation: tuple[tuple[str, Notation], ...] = ()
