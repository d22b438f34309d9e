"""The body of a role or of a table column: operations, labels, loops and branches, not yet bound to a thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.litmus.readers import Reader
from mcheck.ir.expr import Expr
from mcheck.ir.ops import Op
from mcheck.ir.resolve import Fold

Key = tuple[object, ...]
"""What tells the forms of a statement apart."""


@dataclass(slots=True, eq=False)
class Step:
    """An operation as ``mcheck.isa`` decoded it, names still in it. ``memo`` holds its resolved forms by the values of
    the names that are the thread's ``own``, and what its ``readers`` make of those that are ``free`` in it; ``mine``
    says whose (see unroll).

    ``span`` is where it stands if that is not ``op.span``: columns of a table share operations that read alike.
    ``again`` decodes it with the operands folded that become immediates in a thread, if there are any: ``loose``.
    """

    op: Op
    span: Span | None = None
    again: Callable[[Fold], Op] | None = None
    loose: tuple[Expr, ...] = ()
    free: tuple[str, ...] | None = None
    own: tuple[str, ...] = ()
    mine: str = ""
    readers: tuple[Reader, ...] = ()
    memo: dict[tuple[int, ...], dict[Key, Op]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mark:
    """``name:``."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Define:
    """``const name = value`` inside a role; may depend on loop variables and special registers."""

    name: str
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Body:
    """A sequence with the labels that stand directly in it (those of loops inside it are their own)."""

    steps: tuple[Statement, ...]
    labels: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class For:
    """``for variable in low..high { body }``, ``high`` excluded; ``plain`` if its bounds are written without a name."""

    variable: str
    low: Expr
    high: Expr
    body: Body
    span: Span
    plain: bool


@dataclass(frozen=True, slots=True)
class If:
    """``if (condition) { then } else { otherwise }``."""

    condition: Expr
    then: Body
    otherwise: Body
    span: Span
    text: str


Statement = Step | Mark | Define | For | If | Body
