"""The wait for an asynchronous operation of a group, and why one that is there does not cover it (9.7.9.25)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

from mcheck.base.records import dataclass
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Commit, Op, WaitGroup

MOST_OF_WGMMA = 7
"""Groups that ``wgmma.wait_group`` can leave pending (9.7.15.7.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A wait for groups that ``thread`` executes behind an operation. ``own``: it is the one that issued the operation,
    or its group is that thread's too; ``later``: so many groups were closed behind that of the operation by then,
    ``None`` if its own was open.
    """

    op: WaitGroup
    thread: str
    own: bool
    later: int | None


class ReadPhase(Enum):
    """Which fill of its bytes a read meets that a copy is not ordered with: the one that it waits for (``OWN``), or the
    next one, which overwrites what it reads (``NEXT``).
    """

    OWN = auto()
    NEXT = auto()
    EITHER = auto()


def family_of(op: Op) -> str:
    """The groups that an operation belongs to, by the name that waits and commits have."""
    return "wgmma" if isinstance(op, ops.Wgmma) else "cp.async" if isinstance(op, ops.CpAsync) else "bulk"


def pending_groups_note(later: int | None) -> str:
    """What is to be said beside the advice to leave ``later`` groups pending."""
    return "In rounds with fewer groups behind the one waited for, as a loop's last, leave fewer." if later else ""


def wait_for_completion(op: Op, *, write: bool, later: int | None) -> str | None:
    """What waits for an operation of a group: for its writes, or for its reads alone. ``later``: so many groups are
    closed behind its own by then, and may go on; ``None``: its own is open. Of what an mbarrier tells of: nothing.
    """
    match op:
        case ops.Wgmma():
            commit = "wgmma.commit_group.sync.aligned; " if later is None else ""
            return f"Execute {commit}wgmma.wait_group.sync.aligned {min(later or 0, MOST_OF_WGMMA)}"
        case ops.CpAsync():
            return "Execute cp.async.wait_all" if later is None else f"Execute cp.async.wait_group {later}"
        case ops.BulkCopy(mbar=None) | ops.TensorCopy(mbar=None):
            commit = "cp.async.bulk.commit_group; " if later is None else ""
            return f"Execute {commit}cp.async.bulk.wait_group{'' if write else '.read'} {later or 0}"
    return None


def order_before_issue(first: int, second: int, *, fence: bool = False) -> str:
    """What orders the access at line ``first`` before the operation that line ``second`` issues; with the proxy's
    ``fence`` where that is another one's.
    """
    way = "a barrier, or a release that the issuing thread acquires"
    over = ", with fence.proxy.async before it" if fence else ""
    return f"Hand line {first} over before the operation at line {second} is issued: {way}{over}."


def order_before_wgmma(first: int, second: int, *, own: bool) -> str:
    """What puts an access that a thread has made, or taken over, before the reads of a wgmma (8.9.1.1)."""
    after = f"after line {first}" if own else f"after what hands line {first} over"
    return f"Execute wgmma.fence.sync.aligned before line {second}, {after}."


def alternative_order_before_issue(first: int, second: int, *, fence: bool = False) -> str:
    """The same, as what may be meant instead of a wait."""
    text = order_before_issue(first, second, fence=fence)
    return f"Or, if line {first} belongs before it: {text[0].lower()}{text[1:]}"


def count_closed_groups(commits: Iterable[Op], op: Op) -> int | None:
    """How many groups what follows an operation closes behind the group of the operation, ``None`` if not even that
    one: at least so many where a guard decides.
    """
    mine = [c for c in commits if isinstance(c, Commit) and c.family == family_of(op)]
    return max(sum(c.guard is None for c in mine) - 1, 0) if mine else None


def explain_insufficient_wait(op: Op, waits: Iterable[Wait], *, write: bool) -> str:
    """Why the first wait that was meant for an operation does not cover it; empty if none was."""
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
            return f"{where} does not cover the operation, which no commit_group precedes it for."
        pending = wait.op.pending.value if isinstance(wait.op.pending, Const) else 0
        if pending > (wait.later or 0):
            latest = "the latest group pending, which is this one"
            several = f"the {pending} latest groups pending, this one among them"
            return f"{where} leaves {latest if pending == 1 else several}."
        return ""  # it does
    return ""
