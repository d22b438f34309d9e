"""What a sketch of a kernel is written to do: the final state of the concrete engine, where its schedule makes no
difference.

A sketch has no question, but what differs from that state on a chip is what its races do, so that is looked for.
"""

from __future__ import annotations

from mcheck.answers.final_states import terms_of
from mcheck.engines.concrete.machine import Machine, machine
from mcheck.engines.concrete.schedule import run
from mcheck.ir import ops
from mcheck.ir.condition import MemTerm, RegTerm
from mcheck.ir.program import Program
from mcheck.ir.type_sizes import type_size
from mcheck.semantics.chip_behaviour import SM_90

SEEDS = (0, 1, 2)


def intended(program: Program) -> dict[str, int]:
    """The values of the terms of a program by label that all schedules that are tried leave; nothing if one fails."""
    if any(
        isinstance(op, ops.Atomic) and op.dst is not None for op in map(ops.performed_operation, program.operations)
    ):
        return {}  # who comes first decides
    found: dict[str, int] | None = None
    for seed in SEEDS:
        m = machine(program, seed=seed, how=SM_90)
        run(m)
        if m.findings or not all(r.ended for r in m.runners):
            return {}
        values = dict(_values(m, program))
        found = values if found is None else {k: v for k, v in found.items() if values.get(k) == v}
    return found or {}


def _values(m: Machine, program: Program) -> list[tuple[str, int]]:
    out = []
    for term in terms_of(program.condition):
        if isinstance(term, RegTerm):
            value = m.runners[term.thread].registers.get(term.reg)
            kind = program.threads[term.thread].types[term.reg]
            if value is not None:
                out.append((term.label, int(value) % (1 << 8 * (1 if kind == "pred" else type_size(kind)))))
        elif isinstance(term, MemTerm):
            data, known = m.memory.read(term.address, term.size)
            if known is None:
                out.append((term.label, int.from_bytes(data, "little")))
    return out
