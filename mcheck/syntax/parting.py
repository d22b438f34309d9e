"""``.aligned`` instructions in code that only some of a warp's threads have: a leader's, or the branches of a lane's
number (PTX ISA 9.0 sections 9.7.13.3, 9.7.13.16 and 9.7.19.5). Before each stands what says that this is undefined.

Of barriers a thread that has exited is not waited for (Q33), so they have to differ; of other instructions one that
never comes is enough. Those of wgmma and ``bar`` are compared as they are executed, as guards may decide there.
"""

from __future__ import annotations

from collections import defaultdict

from mcheck.errors import Span
from mcheck.program.aligned import DIFFERENT, parted
from mcheck.program.ops import Alu, ClusterBarrier, Op, Parted, TensormapCopyFence
from mcheck.program.program import Thread
from mcheck.syntax.warps import recoded

KINDS = frozenset((TensormapCopyFence, ClusterBarrier, Alu))


def told(threads: tuple[Thread, ...]) -> tuple[Thread, ...]:
    """The threads, with what is undefined of them said where it is."""
    warps: dict[tuple[int, int], list[tuple[Thread, list[Op]]]] = defaultdict(list)
    for thread in threads:
        warps[thread.place.own_warp].append((thread, _aligned(thread)))
    wrong: dict[int, dict[Span, Parted]] = {}
    for warp in warps.values():
        spans = [{op.span for op in own} for _, own in warp]
        if any(there != spans[0] for there in spans):
            wrong |= {t.index: found for t, own in warp if (found := _wrong(own, [x for _, x in warp]))}
    return tuple(_with(t, wrong[t.index]) if t.index in wrong else t for t in threads) if wrong else threads


def _aligned(thread: Thread) -> list[Op]:
    """The instructions of a thread that are looked at, and all its barriers of the cluster."""
    return [op for op in thread.code if type(op) in KINDS and concerns(op)]


def concerns(op: Op) -> bool:
    """Whether an instruction is one that all threads of a warp have to have."""
    return type(op) in KINDS and (type(op) is not Alu or op.text.startswith("setmaxnreg"))


def _wrong(own: list[Op], warp: list[list[Op]]) -> dict[Span, Parted]:
    """What is undefined of a thread's instructions, by their places, since others of its warp do not have them."""
    found: dict[Span, Parted] = {}
    others = [({op.span for op in there}, there) for there in warp]
    for op in own:
        span = op.span
        if span is None or op.guard is not None or all(span in spans for spans, _ in others):
            continue
        if not isinstance(op, ClusterBarrier):
            found[span] = _parted(op, "UB307", parted(None))
        elif op.aligned and any(span not in spans and _instead(op, there, own) for spans, there in others):
            found[span] = _parted(op, "UB305", DIFFERENT)
    return found


def _instead(op: ClusterBarrier, there: list[Op], own: list[Op]) -> bool:
    """Whether another thread, which has not this barrier, has one of its kind that this one has not."""
    spans = {o.span for o in own}
    return any(isinstance(o, ClusterBarrier) and o.kind == op.kind and o.span not in spans for o in there)


def _parted(op: Op, code: str, reason: str) -> Parted:
    return Parted(code=code, reason=reason, span=op.span, text=op.text, section=op.section)


def _with(thread: Thread, wrong: dict[Span, Parted]) -> Thread:
    return recoded(thread, lambda op: [wrong[op.span], op] if op.span is not None and op.span in wrong else [op])
