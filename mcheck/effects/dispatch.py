"""The effect of any operation."""

from __future__ import annotations

from mcheck.effects import async_copies, generic_memory, mbarrier_objects, tensor_copies, tensor_core
from mcheck.effects.effect import Effect
from mcheck.effects.operands import Operands
from mcheck.effects.registry import EFFECTS
from mcheck.effects.site import Site
from mcheck.ir import ops
from mcheck.ir.memory import TensorMapSpec
from mcheck.ir.ops import Op

REGISTERING_MODULES = (async_copies, generic_memory, mbarrier_objects, tensor_copies, tensor_core)
"""Imported for the effects that they register. A tensor copy has two: where its map is, and, once that has been read,
``tensor_copy_effect``."""

NOTHING = Effect()


def effect_of(op: Op, operands: Operands, site: Site) -> Effect:
    """What an operation does with these operands; an empty effect for one that touches nothing by its operands."""
    if isinstance(op, ops.Alu) and op.op == "mapa":
        return generic_memory.mapa(op, operands, site)
    make = EFFECTS.get(type(op))
    if make is None:
        return NOTHING
    made: Effect = make(op, operands, site)
    return made


def tensor_copy_effect(op: ops.TensorCopy, operands: Operands, site: Site, spec: TensorMapSpec | None) -> Effect:
    """What a tensor copy does with the fields of the map that it read; ``None``: the bytes there are no map."""
    return tensor_copies.copy(op, operands, site, spec)
