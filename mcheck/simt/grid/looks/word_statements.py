"""Which instructions look at words of other clusters, and which store to words."""

from __future__ import annotations

from mcheck.frontend.ptx import module as ptx
from mcheck.ir.scopes import GRID_SCOPES
from mcheck.isa.kinds import Kind

SCALARS = frozenset(f"{kind}{bits}" for kind in "bus" for bits in (8, 16, 32, 64)) | {"f32", "f64"}
"""The types of words."""


def is_look(statement: ptx.Statement) -> bool:
    """Whether a load may be a look."""
    opcode = statement.opcode
    if statement.kind is not Kind.LOAD or not opcode.is_strong or opcode.has("mmio"):
        return False
    wide = opcode.has("volatile") or opcode.scope in GRID_SCOPES
    return wide and opcode.space in ("global", "generic") and is_word(opcode.type)


def is_word_store(statement: ptx.Statement) -> bool:
    """Whether an instruction may store to a word that others look at."""
    opcode = statement.opcode
    if opcode.space not in ("global", "generic") or not is_word(opcode.type):
        return False
    if statement.kind is Kind.STORE:
        return opcode.is_strong
    return statement.kind is Kind.ATOMIC and opcode.has("exch") and opcode.vector == 1


def is_word(kind: str) -> bool:
    """Whether an access, or each element of it, is a scalar (8.2.1), not packed."""
    return kind in SCALARS
