"""Atomics that leave what they find: additions of 0, swaps of a value for itself. Programs read by them in loops that
wait, and in arguments about a grid each is a load, which acquires if the atomic does.

*Why a proof without them holds.* Take an execution with such an atomic, and let it only read. What has read its write
reads the one before it, which has the same value and stands at the same place in the order of writes. A release that
it has observed is observed as before, since atomics only pass it on (8.9.2). What the atomic itself releases is not
ordered any more, so there are races all the more, but for those with the write that is left out. So such a load has to
be one that orders clusters: its word is accessed in no other way, and it is taken for a write where that is checked
(``mcheck.simt.grid.pairs.cluster_accesses``). What is found without these atomics need not be so.
"""

from __future__ import annotations

from mcheck.base.records import replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.module import constant_of
from mcheck.ir import ops
from mcheck.ir.ops import Op, performed_operation
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.isa.opcode import read_opcode

INTEGERS = frozenset(f"{kind}{bits}" for kind in "bus" for bits in (32, 64))
ORDERS = {"relaxed": "relaxed", "acquire": "acquire", "release": "relaxed", "acq_rel": "acquire"}
"""The orders of atomics, and of the loads in their places."""
QUALIFIERS = frozenset((*ORDERS, *INTEGERS, "cta", "cluster", "gpu", "sys", "global", "add", "or", "xor", "and", "cas"))
"""What may be written of an atomic that is replaced."""


def without_idle_atomics(module: ptx.Module) -> ptx.Module:
    """The module with loads in the places of atomics that leave what they find; the module itself if it has none."""
    functions = {name: _with_loads(function) for name, function in module.functions.items()}
    if all(functions[name] is function for name, function in module.functions.items()):
        return module
    return replace(module, functions=functions)


def is_idle_atomic(op: Op) -> bool:
    """Whether an operation is a load in the place of an atomic, whose text it has."""
    return isinstance(performed_operation(op), ops.Load) and "atom." in op.text


def _with_loads(function: ptx.Function) -> ptx.Function:
    found = {k: _load_of(s) for k, s in enumerate(function.body) if _is_idle(function, s)}
    if not found:
        return function
    return replace(function, body=tuple(found.get(k, s) for k, s in enumerate(function.body)))


def _is_idle(function: ptx.Function, statement: ptx.Statement) -> bool:
    opcode = statement.opcode
    if statement.kind is not Kind.ATOMIC or opcode.space != "global" or opcode.type not in INTEGERS:
        return False
    if opcode.without(*QUALIFIERS).text != "atom":
        return False
    target, _, *given = statement.operands
    if not isinstance(target, ptx.Register):
        return False
    if opcode.has("cas"):
        values = [constant_of(function, operand) for operand in given]
        return len(given) == 2 and (given[0] == given[1] or (values[0] is not None and values[0] == values[1]))
    idle = -1 if opcode.has("and") else 0
    value = constant_of(function, given[0]) if len(given) == 1 else None
    return value is not None and (value - idle) % (1 << 8 * type_size(opcode.type)) == 0


def _load_of(statement: ptx.Statement) -> ptx.Statement:
    opcode = statement.opcode
    order = ORDERS[opcode.orders[0] if opcode.orders else "relaxed"]
    scope = opcode.choice(("cta", "cluster", "gpu", "sys")) or "gpu"
    opcode = read_opcode(("ld", order, scope, "global", opcode.type))
    return replace(statement, opcode=opcode, operands=statement.operands[:2])
