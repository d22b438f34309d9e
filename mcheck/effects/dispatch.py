"""The plan of any operation."""

from __future__ import annotations

from mcheck.effects import async_copies, generic_memory, mbarrier_objects, tensor_copies, tensor_core
from mcheck.effects.operands import Operands
from mcheck.effects.plan import Plan
from mcheck.effects.registry import PLANS
from mcheck.effects.site import Site
from mcheck.ir import ops
from mcheck.ir.memory import TensorMapSpec
from mcheck.ir.ops import Op

MODULES = (async_copies, generic_memory, mbarrier_objects, tensor_copies, tensor_core)
"""Imported for the plans that they register. A tensor copy has two: where its map is, and, once that has been read,
``tensor_plan``."""

NOTHING = Plan()


def plan(op: Op, operands: Operands, site: Site) -> Plan:
    """What an operation does with these operands; an empty plan for one that touches nothing by its operands."""
    if isinstance(op, ops.Alu) and op.op == "mapa":
        return generic_memory.mapa(op, operands, site)
    make = PLANS.get(type(op))
    if make is None:
        return NOTHING
    made: Plan = make(op, operands, site)
    return made


def tensor_plan(op: ops.TensorCopy, operands: Operands, site: Site, spec: TensorMapSpec | None) -> Plan:
    """What a tensor copy does with the fields of the map that it read; ``None``: the bytes there are no map."""
    return tensor_copies.copy(op, operands, site, spec)
