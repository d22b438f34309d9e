"""How reports show an operation: its text, its step in a trace, the code of a deadlock at it."""

from __future__ import annotations

from mcheck.findings.trace import Effect, Step, StepKind, StepPart
from mcheck.ir import ops
from mcheck.ir.ops import Op

KINDS: dict[type[Op], StepKind] = {
    ops.Load: StepKind.READ,
    ops.Store: StepKind.WRITE,
    ops.Atomic: StepKind.UPDATE,
    ops.Fence: StepKind.FENCE,
    ops.WgmmaFence: StepKind.FENCE,
    ops.GridWait: StepKind.FENCE,
    ops.ProxyFence: StepKind.PROXY_FENCE,
    ops.TensormapCopyFence: StepKind.PROXY_FENCE,
    ops.Barrier: StepKind.BARRIER,
    ops.ClusterBarrier: StepKind.BARRIER,
    ops.WarpSync: StepKind.BARRIER,
    ops.MbarrierInit: StepKind.MBARRIER,
    ops.MbarrierInval: StepKind.MBARRIER,
    ops.MbarrierTx: StepKind.MBARRIER,
    ops.MbarrierArrive: StepKind.MBARRIER,
    ops.MbarrierPending: StepKind.MBARRIER,
    ops.CpAsyncArrive: StepKind.MBARRIER,
    ops.MbarrierWait: StepKind.WAIT,
    ops.WaitGroup: StepKind.WAIT,
    ops.Await: StepKind.WAIT,
}
"""The kind of step of each operation; all others are issued and have their effects later, or none."""


def text_of(op: Op) -> str:
    """The instruction on one line."""
    return " ".join(op.text.split()) or type(op).__name__


def step_of(
    thread: str,
    op: Op,
    *,
    part: StepPart = StepPart.EXECUTES,
    effect: Effect | None = None,
    number: int | None = None,
    skipped: int = 0,
    iteration: str = "",
) -> Step:
    """The step of a trace in which a thread or role executes an operation or a part of it."""
    return Step(
        thread=thread,
        instruction=text_of(op),
        kind=KINDS.get(type(op), StepKind.ISSUE),
        span=op.span,
        part=part,
        effect=effect,
        number=number,
        skipped=skipped,
        iteration=iteration,
    )


def deadlock_code(op: Op) -> str:
    """The code of the finding if a thread waits forever at an operation."""
    match op:
        case ops.MbarrierWait() | ops.Await(inner=ops.MbarrierWait()):
            return "DEAD003"
        case ops.ClusterBarrier():
            return "DEAD005"
        case ops.Barrier():
            return "DEAD002"
        case ops.WarpSync() | ops.Collective() | ops.WaitGroup():
            return "DEAD006"
        case ops.Await():
            return "DEAD004"
    return "DEAD001"
