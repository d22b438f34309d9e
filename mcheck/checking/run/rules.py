"""What a program does for which a model has no rules: an answer about it would mean nothing."""

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
"""What it is, how a program uses it, the base relation that a rule for it needs."""


def find_missing_rules(program: Program, model: Model) -> str:
    """What the program does and the model is silent about, in words; empty if there is nothing."""
    from mcheck.cat.algebra.compiled_models import tape_of

    bases = tape_of(model).bases
    return " and ".join(what for what, used, base in RULES if base not in bases and used.search(program.source))
