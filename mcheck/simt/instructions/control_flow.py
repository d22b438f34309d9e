"""Control flow within a function and out of it: branches, ``ret``, ``exit`` (PTX ISA 9.7.12), ``trap`` (9.7.19.4)."""

from __future__ import annotations

import numpy as np

from mcheck.base.errors import Unsupported
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit, branch_body
from mcheck.simt.execution.cluster import Cluster, Return, Step
from mcheck.simt.execution.compiler import Compiler, compiles, skip, unfollowed
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.traps import pass_uncertain_trap, trap_at


def leave(c: Cluster, mask: Mask) -> None:
    """Back to the caller; out of the kernel where there is none."""
    gone = np.zeros_like(mask)
    back: dict[Return, Mask] = {}
    for lane in np.flatnonzero(mask).tolist():
        stack = c.returns[lane]
        if not stack:
            gone[lane] = True
            continue
        back.setdefault(stack.pop(), np.zeros_like(mask))[lane] = True
    for (place, carry), some in back.items():
        carry(c, some)
        c.place[some] = place
    if gone.any():
        c.left(gone)


@compiles("bra")
def branch(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``bra``; one over arithmetic that nothing depends on goes both ways to the same effect, whatever decides it."""
    label = statement.operands[0]
    if not isinstance(label, ptx.Label):
        raise Unsupported("a branch to what is no label")
    target = unit.start + unit.function.labels[label.name]
    over = branch_body(unit, at - unit.start)
    if over and not any(k.wants(unit, s) for s in over):
        return skip
    guard, span = statement.guard, statement.span
    k.heads.add(target)
    k.heads.add(at + 1)
    if guard is None:

        def jump(c: Cluster, mask: Mask) -> None:
            c.span = span
            c.go(mask, target)

        return jump
    row = unit.frame + guard.register.index
    there, here = trap_at(unit.function, target - unit.start), trap_at(unit.function, at + 1 - unit.start)
    trapped = None if there is not None and here is not None else there or here

    def run(c: Cluster, mask: Mask) -> Mask | None:
        c.span = span
        if trapped is None:
            taken = c.holds(guard, row, mask, statement)
        else:
            spared = pass_uncertain_trap(c, row, mask, trapped, holds=(there is None) is not guard.negated)
            taken = c.holds(guard, row, mask & ~spared, statement)
            taken = taken | spared if there is None else taken
        if not taken.any():
            return mask
        stay = mask & ~taken
        c.place[stay] = at + 1
        c.go(taken, target)
        return None

    return run


@compiles("brx")
def indexed(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``brx.idx``."""
    k.heads.add(at + 1)
    index, targets = statement.operands
    if not isinstance(targets, ptx.Label):
        raise Unsupported("a branch without a list of labels")
    labels = [unit.start + unit.function.labels[name] for name in unit.function.branch_targets[targets.name]]
    fetch = k.fetch(unit, index)
    k.heads.update(labels)

    def run(c: Cluster, mask: Mask) -> None:
        value, known = fetch()
        if c.decides(np.broadcast_to(known, mask.shape), mask, statement) & taint.UNKNOWN:
            c.give_up(mask, f"'{statement.text}' goes where data says")
            return
        value = np.broadcast_to(value, mask.shape)
        for number in np.unique(value[mask]).tolist():
            c.go(mask & (value == number), labels[min(int(number), len(labels) - 1)])

    return k.guarded(unit, statement, run)


@compiles("ret")
def ret(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``ret``."""
    k.heads.add(at + 1)
    return k.guarded(unit, statement, leave)


@compiles("exit")
def end(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``exit``."""
    k.heads.add(at + 1)
    return k.guarded(unit, statement, lambda c, mask: c.left(mask))


@compiles("trap")
def trap(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``trap``: what an assertion that fails comes to."""
    k.heads.add(at + 1)
    ends = k.guarded(unit, statement, unfollowed(statement, "a trap is reached"))
    if statement.guard is None:
        return ends
    guard, row = statement.guard, unit.frame + statement.guard.register.index

    def run(c: Cluster, mask: Mask) -> Mask | None:
        spared = pass_uncertain_trap(c, row, mask, statement, holds=guard.negated)
        rest = mask & ~spared
        went = ends(c, rest) if rest.any() else rest
        if went is not None:
            return went | spared
        c.place[spared] = c.at + 1
        return None

    return run
