"""Fixes and explanations for a missing wait on an asynchronous operation of a group (9.7.9.25)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

from mcheck.base.records import dataclass
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Commit, Op, WaitGroup

MAX_PENDING_WGMMA = 7
"""Groups that ``wgmma.wait_group`` can leave pending (9.7.15.7.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A wait for groups that ``thread`` executes after an asynchronous operation.

    ``own``: ``thread`` issued the operation, or shares its group. ``later``: the number of groups that were closed
    after the operation's group before this wait; ``None`` if the operation's group was still open.
    """

    op: WaitGroup
    thread: str
    own: bool
    later: int | None


class ReadPhase(Enum):
    """Which fill of the bytes of a read an unordered copy is.

    ``OWN``: the fill that the read is meant to see. ``NEXT``: the next one, which overwrites what the read is meant to
    see.
    """

    OWN = auto()
    NEXT = auto()
    EITHER = auto()


def family_of(op: Op) -> str:
    """The family of groups that an operation belongs to, as waits and commits name it."""
    return "wgmma" if isinstance(op, ops.Wgmma) else "cp.async" if isinstance(op, ops.CpAsync) else "bulk"


def pending_groups_note(later: int | None) -> str:
    """A note for the advice to leave ``later`` groups pending; empty if that is 0."""
    return "Leave fewer groups pending where fewer follow, as in the last iterations of a loop." if later else ""


def wait_for_completion(op: Op, *, write: bool, later: int | None) -> str | None:
    """The instruction that waits for an operation of a group: for its writes, or for its reads alone.

    ``later``: the number of groups closed after the operation's group, which may stay pending; ``None``: its group is
    open. Returns ``None`` for an operation that signals an mbarrier.
    """
    match op:
        case ops.Wgmma():
            commit = "wgmma.commit_group.sync.aligned; " if later is None else ""
            return f"Execute {commit}wgmma.wait_group.sync.aligned {min(later or 0, MAX_PENDING_WGMMA)}"
        case ops.CpAsync():
            return "Execute cp.async.wait_all" if later is None else f"Execute cp.async.wait_group {later}"
        case ops.BulkCopy(mbar=None) | ops.TensorCopy(mbar=None):
            commit = "cp.async.bulk.commit_group; " if later is None else ""
            return f"Execute {commit}cp.async.bulk.wait_group{'' if write else '.read'} {later or 0}"
    return None


def order_before_issue(first: int, second: int, *, fence: bool = False) -> str:
    """The fix that orders the access at line ``first`` before the operation that line ``second`` issues.

    ``fence``: the two use different proxies, so a proxy fence is needed as well.
    """
    way = "a barrier, or a release that the issuing thread acquires"
    over = ", with fence.proxy.async before that" if fence else ""
    return f"Order line {first} before the issue of the operation at line {second}: {way}{over}."


def order_before_wgmma(first: int, second: int, *, own: bool) -> str:
    """The fix that orders an earlier access, the thread's ``own`` or one handed over to it, before the reads of a wgmma
    (8.9.1.1).
    """
    after = f"after line {first}" if own else f"after what hands line {first} over"
    return f"Execute wgmma.fence.sync.aligned before line {second}, {after}."


def alternative_order_before_issue(first: int, second: int, *, fence: bool = False) -> str:
    """``order_before_issue`` as an alternative to a wait."""
    text = order_before_issue(first, second, fence=fence)
    return f"Or, if line {first} belongs before it: {text[0].lower()}{text[1:]}"


def count_closed_groups(commits: Iterable[Op], op: Op) -> int | None:
    """The number of groups that ``commits`` close after the operation's own group, ``None`` if they do not close even
    that one.

    Guarded commits are not counted, so this is a lower bound.
    """
    mine = [c for c in commits if isinstance(c, Commit) and c.family == family_of(op)]
    return max(sum(c.guard is None for c in mine) - 1, 0) if mine else None


def explain_insufficient_wait(op: Op, waits: Iterable[Wait], *, write: bool) -> str:
    """Why the first wait that was meant for an operation does not cover it; empty if there is none."""
    family = family_of(op)
    for wait in waits:
        if wait.op.span is None or wait.op.family != family:
            continue
        where = f"The wait at line {wait.op.span.line}"
        if not wait.own:
            return f"{where} is executed by {wait.thread}; groups belong to the issuing thread."
        if wait.op.read and write:
            return f"{where} has .read: it waits until the source has been read, not for the writes."
        if wait.later is None and not wait.op.commits:
            return f"{where} does not cover the operation: no commit_group stands between them."
        pending = wait.op.pending.value if isinstance(wait.op.pending, Const) else 0
        if pending > (wait.later or 0):
            latest = "the latest group pending, which is this one"
            several = f"the {pending} latest groups pending, this one among them"
            return f"{where} leaves {latest if pending == 1 else several}."
        return ""  # it does
    return ""
