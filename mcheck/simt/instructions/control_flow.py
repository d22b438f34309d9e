"""Control flow within a function and out of it: branches, ``ret``, ``exit`` (PTX ISA 9.7.12), ``trap`` (9.7.19.4)."""

from __future__ import annotations

import numpy as np

from mcheck.base.errors import Unsupported
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit, branch_body
from mcheck.isa.kinds import Kind
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.cluster import Cluster, ReturnTo, Step
from mcheck.simt.execution.compiler import Compiler, compiles, no_effect, unsupported_step
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.traps import find_trap, pass_uncertain_trap


def return_or_exit(c: Cluster, mask: Mask) -> None:
    """Return to the caller; exit the kernel where there is none."""
    gone = np.zeros_like(mask)
    back: dict[ReturnTo, Mask] = {}
    for lane in np.flatnonzero(mask).tolist():
        stack = c.return_stacks[lane]
        if not stack:
            gone[lane] = True
            continue
        back.setdefault(stack.pop(), np.zeros_like(mask))[lane] = True
    for (place, carry), some in back.items():
        carry(c, some)
        c.pc[some] = place
    if gone.any():
        c.exit_lanes(gone)


@compiles(Kind.BRANCH)
def branch_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``bra``; a branch over arithmetic that nothing depends on has the same effect either way, so its
    guard is ignored.
    """
    label = statement.operands[0]
    if not isinstance(label, ptx.Label):
        raise Unsupported("the target of a branch is not a label")
    target = unit.start + unit.function.labels[label.name]
    over = branch_body(unit, at - unit.start)
    if over and not any(k.is_needed(unit, s) for s in over):
        return no_effect
    guard, span = statement.guard, statement.span
    k.block_starts.add(target)
    k.block_starts.add(at + 1)
    if guard is None:

        def jump(c: Cluster, mask: Mask) -> None:
            c.span = span
            c.jump(mask, target)

        return jump
    row = unit.frame + guard.register.index
    there, here = find_trap(unit.function, target - unit.start), find_trap(unit.function, at + 1 - unit.start)
    trapped = None if there is not None and here is not None else there or here

    def run(c: Cluster, mask: Mask) -> Mask | None:
        c.span = span
        if trapped is None:
            taken = c.evaluate_guard(guard, row, mask, statement)
        else:
            spared = pass_uncertain_trap(c, row, mask, trapped, holds=(there is None) is not guard.negated)
            taken = c.evaluate_guard(guard, row, mask & ~spared, statement)
            taken = taken | spared if there is None else taken
        if not taken.any():
            return mask
        stay = mask & ~taken
        c.pc[stay] = at + 1
        c.jump(taken, target)
        return None

    return run


@compiles(Kind.INDEXED_BRANCH)
def indexed_branch_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``brx.idx``."""
    k.block_starts.add(at + 1)
    index, targets = statement.operands
    if not isinstance(targets, ptx.Label):
        raise Unsupported("an indexed branch has no list of labels")
    labels = [unit.start + unit.function.labels[name] for name in unit.function.branch_targets[targets.name]]
    fetch = k.fetch(unit, index)
    k.block_starts.update(labels)

    def run(c: Cluster, mask: Mask) -> None:
        value, known = fetch()
        if c.note_control(np.broadcast_to(known, mask.shape), mask, statement) & taint.UNKNOWN:
            c.give_up(mask, f"'{statement.text}' branches to a label that depends on data")
            return
        value = np.broadcast_to(value, mask.shape)
        for number in distinct(value[mask]).tolist():
            c.jump(mask & (value == number), labels[min(int(number), len(labels) - 1)])

    return k.with_guard(unit, statement, run)


@compiles(Kind.RETURN)
def return_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``ret``."""
    k.block_starts.add(at + 1)
    return k.with_guard(unit, statement, return_or_exit)


@compiles(Kind.EXIT)
def exit_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``exit``."""
    k.block_starts.add(at + 1)
    return k.with_guard(unit, statement, lambda c, mask: c.exit_lanes(mask))


@compiles(Kind.TRAP)
def trap_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``trap``, to which a failing assertion leads."""
    k.block_starts.add(at + 1)
    ends = k.with_guard(unit, statement, unsupported_step(statement, "a trap is reached"))
    if statement.guard is None:
        return ends
    guard, row = statement.guard, unit.frame + statement.guard.register.index

    def run(c: Cluster, mask: Mask) -> Mask | None:
        spared = pass_uncertain_trap(c, row, mask, statement, holds=guard.negated)
        rest = mask & ~spared
        went = ends(c, rest) if rest.any() else rest
        if went is not None:
            return went | spared
        c.pc[spared] = c.current_pc + 1
        return None

    return run
