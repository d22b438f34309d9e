"""Warp-wide ``tensormap.cp_fenceproxy``: one copy for all lanes of a warp (PTX ISA 9.0 section 9.7.13.16).

It is ``.sync.aligned`` and copies one object: if several lanes of a warp execute it, they synchronise, the first of
them copies, and they synchronise again. A guarded one is executed by the lanes whose guard holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mcheck.base.errors import Span
from mcheck.base.records import replace
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op, TensormapCopyFence, WarpSync
from mcheck.ir.program import Thread


def merge_warp_copies(threads: tuple[Thread, ...]) -> tuple[Thread, ...]:
    """The threads, with every such copy executed once per warp."""
    lanes: dict[tuple[int, int, Span], list[int]] = {}
    for thread in threads:
        for span in {op.span for op in _copies(thread.code) if op.span is not None}:
            lanes.setdefault((*thread.place.own_warp, span), []).append(thread.place.lane)
    if not any(len(found) > 1 for found in lanes.values()):
        return threads
    return tuple(_synchronise_copies(thread, lanes) for thread in threads)


def _copies(code: Iterable[Op]) -> list[Op]:
    return [op for op in code if isinstance(op, TensormapCopyFence) and op.guard is None]


def _synchronise_copies(thread: Thread, lanes: dict[tuple[int, int, Span], list[int]]) -> Thread:
    """The thread with its copies between two synchronisations of the lanes; without them if another lane copies."""

    def met(_: int, op: Op) -> list[Op]:
        here = lanes.get((*thread.place.own_warp, op.span), []) if _copies([op]) and op.span else []
        if len(here) < 2:
            return [op]
        mask = Const(sum(1 << lane for lane in here))
        meeting = WarpSync(mask=mask, span=op.span, text=op.text, section=op.section)
        return [meeting, *([op] if thread.place.lane == min(here) else []), meeting]

    return replace_operations(thread, met)


def replace_operations(thread: Thread, steps: Callable[[int, Op], list[Op]]) -> Thread:
    """The thread with each operation replaced by several, given its position; labels move with the operation after."""
    code: list[Op] = []
    moved: list[int] = []
    for at, op in enumerate(thread.code):
        moved.append(len(code))
        code += steps(at, op)
    moved.append(len(code))
    if len(code) == len(thread.code):
        return thread
    return replace(thread, code=tuple(code), labels={name: moved[at] for name, at in thread.labels.items()})
