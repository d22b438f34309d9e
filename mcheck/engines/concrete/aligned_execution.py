"""Detection of aligned wgmma instructions that not all lanes of a warp execute (PTX ISA 9.0 section 9.7.15)."""

from __future__ import annotations

from mcheck.engines.concrete.machine import Machine, Runner
from mcheck.ir import ops
from mcheck.ir.aligned_operations import Statement, aligned_statement, explain_divergent_wgmma, is_wgmma
from mcheck.ir.ops import Op


def check_aligned(m: Machine, runner: Runner, op: Op) -> None:
    """Records the next aligned instruction of a lane; reports it if another lane has executed a different one, or has
    exited.

    For two barriers, the barriers report it (``mcheck.engines.concrete.execution_barriers``).
    """
    if not (is_wgmma(op) or (isinstance(op, ops.Barrier) and op.aligned)):
        return
    k, statement = len(runner.aligned), aligned_statement(op)
    runner.aligned.append(statement)
    for mate in _mates(m, runner):
        if k < len(mate.aligned):
            there = mate.aligned[k]
            if there != statement and not (there[-1] and statement[-1]):
                lone, instead = (mate, statement) if statement[-1] else (runner, there)
                _report(m, lone, k, instead)
        elif mate.ended and not statement[-1]:
            _report(m, runner, k, None)


def check_exited_lane(m: Machine, runner: Runner) -> None:
    """For a lane that exits, reports a wgmma instruction that another lane has executed and it has not."""
    for mate in _mates(m, runner):
        for k in range(len(runner.aligned), len(mate.aligned)):
            if not mate.aligned[k][-1]:
                _report(m, mate, k, None)


def _mates(m: Machine, runner: Runner) -> list[Runner]:
    warp = runner.thread.place.own_warp
    return [r for r in m.runners if r is not runner and r.thread.place.own_warp == warp]


def _report(m: Machine, runner: Runner, k: int, instead: Statement | None) -> None:
    """Reports the ``k``-th aligned instruction of a lane, once for each warp: later ones are out of step too."""
    warp = runner.thread.place.own_warp
    if warp not in m.diverged_warps:
        m.diverged_warps.add(warp)
        op = next(op for op in runner.thread.code if aligned_statement(op) == runner.aligned[k])
        m.report(
            "UB307", explain_divergent_wgmma(instead), runner.thread.index, op, f"PTX ISA 9.0 section {op.section}"
        )
