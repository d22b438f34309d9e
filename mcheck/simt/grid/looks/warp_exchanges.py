"""Votes and shuffles of lanes of whose values some bits are known."""

from __future__ import annotations

import numpy as np

from mcheck.frontend.ptx.module import Statement
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.grid.looks.known_bits import EVERY, ZERO, Bits, anything, known
from mcheck.simt.grid.looks.warp_states import Lanes, Vote


def vote(mode: str, given: Bits, mask: Lanes) -> Bits:
    """The result of a vote of these lanes (9.7.13.10)."""
    unknown = np.broadcast_to(given.unknown != 0, mask.shape) & mask
    yes = np.broadcast_to(given.value != 0, mask.shape) & mask & ~unknown
    no = mask & ~yes & ~unknown
    whole = np.zeros(WARP, np.uint64)
    if mode == "ballot":
        bits = np.uint64(1) << np.arange(WARP, dtype=np.uint64)
        value, doubt = np.bitwise_or.reduce(bits[yes], initial=0), np.bitwise_or.reduce(bits[unknown], initial=0)
        return Bits(whole + np.uint64(value), whole + np.uint64(doubt))
    sure: bool | None = None
    if mode == "any":
        sure = True if yes.any() else None if unknown.any() else False
    elif mode == "all":
        sure = False if no.any() else None if unknown.any() else True
    elif yes.any() and no.any():
        sure = False
    elif not unknown.any():
        sure = True
    return anything(1, (WARP,)) if sure is None else known(whole + np.uint64(sure))


def remember(mode: str, given: Bits, mask: Lanes) -> Vote | None:
    """What the result of a vote tells of each lane: if not ``any`` has voted true, or ``all`` have."""
    if mode not in ("any", "all"):
        return None
    told = mode == "all"
    return Vote(told, (given.unknown != 0) | ((given.value != 0) == told) | ~mask)


def shuffle(statement: Statement, given: Bits, by: Bits, clamps: Bits, mask: Lanes) -> tuple[list[Bits] | None, bool]:
    """The results of a shuffle of these lanes (9.7.9.6), and whether all get the same one."""
    if by.unknown.any() or clamps.unknown.any():
        return None, False
    lane = np.arange(WARP)
    step, c = (np.broadcast_to(x.value, (WARP,)).astype(np.int64) for x in (by, clamps))
    step, clamp, segment = step & 31, c & 31, c >> 8 & 31
    least = lane & segment
    most = least | clamp & ~segment & 31
    mode = statement.opcode.choice(("up", "down", "bfly", "idx"))
    if mode == "up":
        source, inside = lane - step, lane - step >= most
    elif mode == "down":
        source, inside = lane + step, lane + step <= most
    elif mode == "bfly":
        source, inside = lane ^ step, (lane ^ step) <= most
    else:
        source = least | step & ~segment & 31
        inside = source <= most
    source = np.where(inside, source, lane)
    there = mask[source]
    value, unknown = (np.broadcast_to(x, (WARP,))[source] for x in (given.value, given.unknown))
    result = Bits(np.where(there, value, ZERO), np.where(there, unknown, EVERY))
    one = len(distinct(source[mask])) == 1 and bool(there[mask].all())
    made = [result, known(inside.astype(np.uint64))]
    return made[: len(statement.defs)], one and len(statement.defs) == 1
