"""The checked syntax tree of a cat model: every name resolved, every expression typed as set or relation.

Functions and procedures are inlined and includes spliced by the checker, so an evaluator sees only ``Let``, ``LetRec``
and ``Check`` statements over the operators below. Equal expressions are equal trees (spans do not compare), which lets
evaluators share work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING

from mcheck.base.errors import Span
from mcheck.base.records import dataclass


class Kind(Enum):
    """The type of an expression."""

    SET = "set"
    REL = "relation"


@dataclass(frozen=True, slots=True)
class Base:
    """A base set or relation that the event structure supplies (see ``mcheck.cat.names``)."""

    name: str
    kind: Kind
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Var:
    """A name bound by ``Let`` or ``LetRec``; ``uid`` is unique in the model, so shadowing is already resolved."""

    uid: int
    name: str
    kind: Kind
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Empty:
    """``0``, of either kind."""

    kind: Kind


@dataclass(frozen=True, slots=True)
class Op1:
    """``op``: ``+`` ``*`` ``?`` ``^-1`` (relation), ``~`` (complement, either kind), ``[]`` (set -> identity relation),

    ``domain`` ``range`` (relation -> set).
    """

    op: str
    arg: Node
    kind: Kind
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Op2:
    """``op``: ``|`` ``&`` ``\\`` (both of one kind), ``;`` (relations), ``*`` (sets -> relation)."""

    op: str
    left: Node
    right: Node
    kind: Kind
    span: Span | None = field(default=None, compare=False)


Node = Base | Var | Empty | Op1 | Op2


@dataclass(frozen=True, slots=True)
class Let:
    var: Var
    body: Node


@dataclass(frozen=True, slots=True)
class LetRec:
    """Least fixpoint of mutually recursive definitions (checked to be monotone in their own names)."""

    bindings: tuple[Let, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """``[flag] [~]test body as name``; ``test`` is acyclic, irreflexive or empty. A flag only reports."""

    test: str
    negated: bool
    body: Node
    name: str
    flag: bool = False
    span: Span | None = field(default=None, compare=False)


Statement = Let | LetRec | Check


@dataclass(frozen=True, slots=True)
class Included:
    """A file that a model includes: by which name from which file, and what was found there."""

    source: str
    name: str
    path: str
    real: str
    text: str


@dataclass(frozen=True, slots=True)
class Texts:
    """A model as it was read: with it the model can be read where none of its files are."""

    path: str
    text: str
    included: tuple[Included, ...] = ()


@dataclass(frozen=True, slots=True)
class Model:
    """``name`` from the first line or the file; ``path`` of the file; ``shows`` are the names listed by ``show``.

    ``options`` holds ``key = value`` pairs from comments of the form ``(* mcheck: key = value *)`` (see docs).
    ``texts`` is what was read, ``digest`` that of the name and of all of it.
    """

    name: str
    path: str
    statements: tuple[Statement, ...]
    shows: tuple[Var | Base, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    doc: str = ""
    digest: str = field(default="", compare=False)
    texts: Texts | None = field(default=None, compare=False, repr=False)
    reread: Reader | None = field(default=None, compare=False, repr=False)
    """Reads the texts again, for what the form on disk of a compiled model lacks."""

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """The statements and shows of a model that was compiled before: engines look at its tape alone."""
            if name not in _UNCOMPILED:
                raise AttributeError(name)
            again = self.reread(self.texts)
            for each in _UNCOMPILED:
                object.__setattr__(self, each, getattr(again, each))
            return getattr(self, name)


_UNCOMPILED = ("statements", "shows")
Reader = Callable[[Texts], Model]


def make_compiled_model(
    name: str, path: str, options: tuple[tuple[str, str], ...], doc: str, digest: str, *, texts: Texts, reread: Reader
) -> Model:
    """A model without statements and shows, which are read when they are asked for."""
    model = Model.__new__(Model)
    values = {"name": name, "path": path, "options": options, "doc": doc, "digest": digest}
    for field_name, value in {**values, "texts": texts, "reread": reread}.items():
        object.__setattr__(model, field_name, value)
    return model
