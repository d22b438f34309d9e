"""Syntax trees of roles and table columns: operations, labels, loops and branches, not yet bound to a thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.litmus.readers import Reader
from mcheck.frontend.litmus.source import Source
from mcheck.ir.expr import Expr
from mcheck.ir.ops import Op
from mcheck.ir.resolve import Fold

Key = tuple[object, ...]
"""The memo key of a resolved form of a statement."""


@dataclass(slots=True, eq=False)
class Step:
    """An operation as decoded by ``mcheck.isa``, with names in it. ``memo`` has its resolved forms by the values of
    ``own_names``, which depend on the thread or its CTA (``owner``, see unroll), and by the values that its
    ``readers`` compute from ``common_names``, the other ones.

    ``span`` is its location if that is not ``op.span``: columns of a table share equal operations. ``decode_folded``
    decodes it again once the ``foldable`` operands, which become immediates in a thread, are folded.
    """

    op: Op
    span: Span | None = None
    decode_folded: Callable[[Fold], Op] | None = None
    foldable: tuple[Expr, ...] = ()
    common_names: tuple[str, ...] | None = None
    own_names: tuple[str, ...] = ()
    owner: str = ""
    readers: tuple[Reader, ...] = ()
    memo: dict[tuple[int, ...], dict[Key, Op]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mark:
    """A label, ``name:``."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Define:
    """A constant, ``const name = value``, inside a role; may depend on loop variables and special registers."""

    name: str
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Body:
    """A sequence of statements with the labels directly in it (nested loops have their own)."""

    steps: tuple[Statement, ...]
    labels: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class For:
    """A loop, ``for variable in low..high { body }``, ``high`` excluded; ``plain`` if no name is in its bounds."""

    variable: str
    low: Expr
    high: Expr
    body: Body
    span: Span
    plain: bool


@dataclass(frozen=True, slots=True)
class If:
    """A branch, ``if (condition) { then } else { otherwise }``."""

    condition: Expr
    then: Body
    otherwise: Body
    span: Span
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file as it is written: the statements of each role or column by its name, and the text they are in."""

    bodies: Mapping[str, Body]
    source: Source
    table: bool


Statement = Step | Mark | Define | For | If | Body
