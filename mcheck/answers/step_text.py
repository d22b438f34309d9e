"""How reports show an operation: its text, its step in a trace, the code of a deadlock at it."""

from __future__ import annotations

from collections.abc import Sequence

from mcheck.answers.number_text import format_ranges
from mcheck.base.phrase import Thing
from mcheck.base.records import replace
from mcheck.findings.trace import Step, StepEffect, StepKind, StepPart
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.ir.program import Program

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
    effect: StepEffect | None = None,
    number: int | None = None,
    skipped: int = 0,
    observes: tuple[int, ...] = (),
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
        observes=observes,
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


def name_of_threads(program: Program, threads: Sequence[int]) -> str:
    """The name of a thread, or of the lanes of a warp: ``consumer[0..31]``."""
    first = program.threads[threads[0]]
    if len(threads) == 1:
        return first.name
    return f"{first.role}[{format_ranges(sorted(program.threads[t].number for t in threads))}]"


def thing_at(program: Program, address: int) -> Thing:
    """The object at an address, with the element or the offset; in the program's terms if it has some."""
    own_name = program.terms.thing_at(address) if program.terms is not None else None
    if own_name is not None:
        return own_name
    instance = program.memory.find(address)
    if instance is None:
        return Thing(hex(address))
    offset = address - instance.base
    item = instance.object
    if item.dims and item.elem_size and offset % item.elem_size == 0 and len(item.dims) == 1:
        return replace(instance.thing(), name=f"{item.name}[{offset // item.elem_size}]")
    return instance.thing(f" + {offset}" if offset else "")
