"""A test of a phase that nothing repeats: it may answer false, and what stands behind it is executed all the same
(9.7.13.15.16).
"""

from __future__ import annotations

from mcheck.answers.advice.graph import ExecutionGraph, GraphAccess, Step, site_of
from mcheck.base.phrase import Code
from mcheck.findings.fix import Fix, Repeat
from mcheck.ir import ops
from mcheck.ir.def_use import read_registers


def suggest_repeated_test(g: ExecutionGraph) -> Fix | None:
    """To repeat the test that is the last wait for an mbarrier before an access, until the phase is complete; ``None``
    if threads wait before both accesses, or act on what the test answers.
    """
    for access in (g.new, g.old):
        test = _last_wait(g, access)
        if test is None or not isinstance(wait := test.op, ops.MbarrierWait) or _is_acted_on(g, test, access):
            continue
        name = f"mbarrier.{'try_wait' if wait.blocking else 'test_wait'}"
        return Fix((Repeat(Code(name), site_of(wait), site_of(access.op)),))
    return None


def _last_wait(g: ExecutionGraph, access: GraphAccess) -> Step | None:
    """The last test of a phase, or wait for one, before an access in its thread."""
    own = [e for e in g.own_steps(access.agent) if e.step < access.step]
    return next((e for e in reversed(own) if isinstance(ops.performed_operation(e.op), ops.MbarrierWait)), None)


def _is_acted_on(g: ExecutionGraph, test: Step, access: GraphAccess) -> bool:
    """Whether the path of the thread depends on what the test answers, or the access is guarded by it."""
    assert isinstance(test.op, ops.MbarrierWait)
    if test.op.dst is None:
        return False
    name, guard = test.op.dst.name, access.op.guard
    if guard is not None and guard.reg.name == name:
        return not guard.negated
    behind = [e.op for e in g.own_steps(access.agent) if test.step < e.step < access.step]
    reads = (register for op in behind if isinstance(op, ops.Branch) for register, _ in read_registers(op))
    assumed = (op.reg.name for op in behind if isinstance(op, ops.AssumedValue))
    return name in (*reads, *assumed)
