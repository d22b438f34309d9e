"""Operations on the registers of a thread and on where it continues."""

from __future__ import annotations

from typing import ClassVar

from mcheck.base.records import dataclass
from mcheck.ir.expr import Expr, Reg
from mcheck.ir.ops.operation import Facets, Op

Ranges = tuple[tuple[int, int], ...]
"""Unsigned numbers, as ranges: the least and the greatest of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alu(Op):
    """``dsts := op.type(srcs)``; see ``mcheck.ir.alu`` for the operations.

    ``op`` is the PTX name with the modifiers that change the result: ``mov``, ``add``, ``sub``, ``mul.lo``,
    ``mul.hi``, ``mul.wide``, ``mad.lo``, ``div``, ``rem``, ``min``, ``max``, ``and``, ``or``, ``xor``, ``not``,
    ``neg``,
    ``shl``, ``shr``, ``setp.eq`` …, ``selp``, ``cvt`` (``src_type`` holds the source's type), ``cvta``, ``mapa``,
    ``activemask``, ``nop``, ``opaque`` (a value of which nothing is said); ``pack`` and ``unpack`` are ``mov`` from and
    to a vector.
    """

    facets: ClassVar[Facets] = Facets(computes=True)

    op: str
    type: str
    dsts: tuple[Reg | None, ...]
    srcs: tuple[Expr, ...]
    src_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Label(Op):
    """A branch target; no effect."""

    facets: ClassVar[Facets] = Facets(computes=True)

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch(Op):
    """A branch to ``target`` (a label's name) if ``condition`` is not zero, unconditional if it is ``None``."""

    facets: ClassVar[Facets] = Facets()

    target: str
    condition: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit(Op):
    """The end of the thread."""

    facets: ClassVar[Facets] = Facets()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trap(Op):
    """``trap``: aborts the grid, which is a finding where it is executed."""

    facets: ClassVar[Facets] = Facets()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownContinuation(Op):
    """From here on the behaviour of the thread is not known, for a ``reason``; if this is reached, the answer is
    ``unknown``.
    """

    facets: ClassVar[Facets] = Facets()

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedValue(Op):
    """The code after it assumes that the load or atomic before it has left one of ``values``, of ``size`` bytes, in
    ``reg``.

    With another one the thread takes a path that is not in the program. If that is possible, the answer is
    ``bounded``, unless ``branch`` names this point among those of the thread: then the answer tells the other values.
    """

    facets: ClassVar[Facets] = Facets()

    reg: Reg
    values: Ranges
    size: int
    branch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Await(Op):
    """Blocks until ``inner`` returns a true predicate, or until the comparison of the loaded value holds.

    For a wait on an mbarrier ``inner`` is a ``MbarrierWait`` whose ``dst`` is ``None`` and ``compare`` is ``None``;
    for a load or an atomic ``compare`` is (operator, right-hand side) on the first destination register.

    ``followed``: the thread does not wait, but the code after it assumes that this holds. If it does not, the thread
    takes a path that is not in the program: if that is possible, the answer is ``bounded``.

    ``settled``: attempts of an atomic that fail change nothing, or the answer says that they may.
    """

    facets: ClassVar[Facets] = Facets(blocks=True)

    inner: Op
    compare: tuple[str, Expr] | None = None
    followed: bool = False
    settled: bool = False


def performed_operation(op: Op) -> Op:
    """The operation that is executed: the inner one of an ``await``, else the operation itself."""
    return op.inner if isinstance(op, Await) else op
