"""``.aligned`` instructions in code that only some of a warp's threads have: a leader's, or the branches of a lane's
number (PTX ISA 9.0 sections 9.7.13.3, 9.7.13.16 and 9.7.19.5). Before each stands what says that this is undefined.

Of barriers a thread that has exited is not waited for (Q33), so they have to differ; of other instructions one that
never comes is enough. Those of wgmma and ``bar`` are compared as they are executed, as guards may decide there.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from mcheck.errors import Span
from mcheck.program.aligned import parted
from mcheck.program.ops import Alu, ClusterBarrier, Op, Parted, TensormapCopyFence
from mcheck.program.program import Thread


def told(threads: tuple[Thread, ...]) -> tuple[Thread, ...]:
    """The threads, with what is undefined of them said where it is."""
    warps: dict[tuple[int, int], list[Thread]] = defaultdict(list)
    for thread in threads:
        warps[thread.place.own_warp].append(thread)
    wrong = {t.index: found for warp in warps.values() if len(warp) > 1 for t in warp if (found := _wrong(t, warp))}
    return tuple(_with(t, wrong[t.index]) if t.index in wrong else t for t in threads) if wrong else threads


def _wrong(thread: Thread, warp: list[Thread]) -> dict[Span, Parted]:
    """What is undefined of a thread's instructions, by their places, since others of its warp do not have them."""
    found: dict[Span, Parted] = {}
    others = [{op.span for op in t.code} for t in warp if t is not thread and t.code is not thread.code]
    for op in thread.code if others else ():
        span = op.span
        if span is None or op.guard is not None or all(span in there for there in others):
            continue
        if isinstance(op, TensormapCopyFence) or (isinstance(op, Alu) and op.text.startswith("setmaxnreg")):
            found[span] = _parted(op, "UB307", parted(None))
        elif isinstance(op, ClusterBarrier) and op.aligned and any(_instead(op, t, thread) for t in warp):
            found[span] = _parted(op, "UB305", "threads of one warp execute different aligned barriers")
    return found


def _instead(op: ClusterBarrier, other: Thread, thread: Thread) -> bool:
    """Whether another thread has a barrier of the kind that this one has not, and not this barrier."""
    if any(o.span == op.span for o in other.code):
        return False
    own = {o.span for o in thread.code}
    return any(isinstance(o, ClusterBarrier) and o.kind == op.kind and o.span not in own for o in other.code)


def _parted(op: Op, code: str, reason: str) -> Parted:
    return Parted(code=code, reason=reason, span=op.span, text=op.text, section=op.section)


def _with(thread: Thread, wrong: dict[Span, Parted]) -> Thread:
    code: list[Op] = []
    moved: list[int] = []
    for op in thread.code:
        moved.append(len(code))
        if op.span is not None and op.span in wrong:
            code.append(wrong[op.span])
        code.append(op)
    moved.append(len(code))
    return replace(thread, code=tuple(code), labels={name: moved[at] for name, at in thread.labels.items()})
