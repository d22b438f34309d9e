"""The barriers of a CTA that a fix may use (PTX ISA 9.7.13.1)."""

from __future__ import annotations

from collections.abc import Collection

from mcheck.ir.expr import Const, Expr

NUMBERS = range(1, 16)
"""Barrier 0 is that of the whole CTA."""


def unused_barrier(named: Collection[Expr | None]) -> int | None:
    """The first barrier that is none of the ``named`` ones."""
    return next((number for number in NUMBERS if Const(number) not in named), None)
