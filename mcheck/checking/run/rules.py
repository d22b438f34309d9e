"""Operations of a program for which a model has no rules, so that its answer would be meaningless."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcheck.cat.ast import Model
    from mcheck.ir.program import Program

RULES = (
    ("asynchronous operations", re.compile(r"\b(cp\.async|cp\.reduce\.async|st\.async|red\.async|wgmma)\b"), "issue"),
    ("mbarriers", re.compile(r"\bmbarrier\."), "phase"),
)
"""Kinds of operations: a name, a pattern of their text, the base relation that a model needs to give them rules."""


def find_missing_rules(program: Program, model: Model) -> str:
    """The operations of the program for which the model has no rules, as text; empty if there are none."""
    from mcheck.cat.algebra.compiled_models import tape_of

    bases = tape_of(model).bases
    return " and ".join(what for what, used, base in RULES if base not in bases and used.search(program.source))
