"""What asynchronous copies of a CTA access, and which of them stay inside it: for sketches with any number of CTAs.

A copy is followed if its completion is known to its own CTA alone, by an mbarrier or a group of its thread, and if it
copies between shared memory of the CTA and global memory. It is one access of each, as large as it says: so copies that
leave out bytes are not followed, nor are those that go to several CTAs, or that are strong (PTX ISA 9.4).
"""

from __future__ import annotations

from mcheck.base.records import dataclass
from mcheck.frontend.litmus.cancel_requests import is_request
from mcheck.ir import ops
from mcheck.ir.cta_family import NotAlike
from mcheck.ir.expr import Expr
from mcheck.ir.ops import Op
from mcheck.ir.type_sizes import type_size

MBARRIER_OPERATIONS = (
    ops.MbarrierInit, ops.MbarrierInval, ops.MbarrierTx, ops.MbarrierArrive, ops.MbarrierWait, ops.CpAsyncArrive,
)  # fmt: skip
COPIES = (ops.CpAsync, ops.BulkCopy)
COMPLETIONS = (ops.Commit, ops.WaitGroup, ops.MbarrierPending)
INSIDE_ONE_CTA = (*MBARRIER_OPERATIONS, *COPIES, *COMPLETIONS, ops.ProxyFence)
"""Operations that nobody but the CTA of their thread can notice, but for the accesses of copies."""
GROUPS = ("cp.async", "bulk")
CHUNK = 16
"""Bulk copies are aligned to so many bytes (PTX ISA 9.7.9.25.4.1)."""


@dataclass(frozen=True, slots=True)
class GlobalSide:
    """The access of global memory by a copy: if it ``reduces``, then elements of so many bytes, at this ``scope``,
    ``None`` that of the model. It goes through ``proxy``; its address is a multiple of ``aligned``.
    """

    address: Expr
    size: Expr
    writes: bool
    proxy: str
    aligned: Expr | int
    reduces: int = 0
    scope: str | None = None


def sides_of(op: ops.CpAsync | ops.BulkCopy) -> tuple[GlobalSide, Expr, bool]:
    """The access of global memory, the address in shared memory, and whether the copy writes there. Raises
    ``NotAlike``.
    """
    match op:
        case ops.CpAsync(src_size=None, ignore_src=None):
            return GlobalSide(op.src, op.size, writes=False, proxy="generic", aligned=op.size), op.dst, True
        case ops.BulkCopy(cta_mask=None, byte_mask=None, multimem=None) if not op.is_strong and not is_request(op):
            if op.src_space == "global" and op.reduce is None:
                return GlobalSide(op.src, op.size, writes=False, proxy="async", aligned=CHUNK), op.dst, True
            if op.dst_space == "global" and op.src_space == "shared::cta":
                side = GlobalSide(
                    op.dst, op.size, writes=True, proxy="async", aligned=CHUNK,
                    reduces=0 if op.reduce is None else type_size(op.type or ""), scope=op.scope,
                )  # fmt: skip
                return side, op.src, False
    raise NotAlike(f"'{op.text}' is not followed", op.span)


def check_inside(op: Op) -> None:
    """Check that an operation is noticed by its own CTA alone. Raises ``NotAlike``."""
    if (isinstance(op, ops.ProxyFence) and op.kind != "async") or (
        isinstance(op, ops.Commit | ops.WaitGroup) and op.family not in GROUPS
    ):
        raise NotAlike(f"'{op.text}' is not followed", op.span)
