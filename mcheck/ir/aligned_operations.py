"""``.aligned`` instructions, which all threads of a warp must execute: aligned barriers, and those of wgmma."""

from __future__ import annotations

from mcheck.ir import ops
from mcheck.ir.ops import Op

Statement = tuple[int, int, bool]
"""The line and the column of an aligned instruction, and whether it is a barrier."""


DIVERGENT_BARRIERS = "threads of one warp execute different aligned barriers"
"""The message of UB305."""


def is_wgmma(op: Op) -> bool:
    """Whether this is a ``wgmma.fence``, ``mma_async`` or ``wait_group`` (PTX ISA 9.0 section 9.7.15)."""
    return isinstance(op, ops.WgmmaFence | ops.Wgmma) or (isinstance(op, ops.WaitGroup) and op.family == "wgmma")


def aligned_statement(op: Op) -> Statement:
    """The source statement of an aligned instruction."""
    line, column = (op.span.line, op.span.column) if op.span is not None else (0, 0)
    return line, column, isinstance(op, ops.Barrier)


def explain_divergent_wgmma(instead: Statement | None) -> str:
    """What is wrong where a lane executes an instruction of wgmma and another one of its warp does not, but this one
    ``instead``, or none.
    """
    other = "never does" if instead is None else f"executes that of line {instead[0]} instead"
    return f"a lane of the warp executes this .aligned instruction, and another one {other}"


def explain_divergent_warps(own: Statement, instead: Statement | None) -> str:
    """What is wrong where a warp executes an instruction of its warpgroup and another warp of it has none, or one
    ``instead``: this one, if that is of a later round.
    """
    other = "never does"
    if instead is not None:
        other = "skips it in this round" if instead == own else f"executes that of line {instead[0]} instead"
    return f"a warp of the warpgroup executes this .aligned instruction, and another one {other}"
