"""Deep copies of a machine: a second machine in the same state, which may continue independently.

Mutable objects are copied, each once, so that aliases remain aliases. Everything immutable is shared: events,
operations, vector clocks, the steps of the trace. The declarations of the states
(``mcheck.base.declared_state``) say which is which.
"""

from __future__ import annotations

from mcheck.base.declared_state import check_declared, copier_of
from mcheck.engines.protocol.execution.machine import Machine


def copy_machine(m: Machine) -> Machine:
    """Return a copy of a machine between two steps, without its observers."""
    check_declared(m)
    check_declared(m.window)
    out: Machine = copier_of(Machine)(m, {})
    for agent in out.agents:
        agent.emitters = out.make_emitters(agent.threads)
    return out
