"""Checks at the end of threads: instructions that some lanes of a warp have executed and others not, and registers used
too early.

A violation is reported only if the path of the threads is certain: no branch was chosen.
"""

from __future__ import annotations

from mcheck.base.phrase import Phrase
from mcheck.frontend.ptx.module import Statement
from mcheck.ir import ops
from mcheck.ir.aligned_operations import explain_divergent_wgmma
from mcheck.simt.execution.async_registers import WAITS
from mcheck.simt.execution.cluster import Cluster
from mcheck.simt.execution.warp_convergence import SECTIONS


def check_end(c: Cluster) -> None:
    """Check that all lanes have executed the same aligned instructions, and their early uses of registers."""
    if not c.recorded.order_is_possible or c.chosen_spans:
        return
    for statement, lane in c.convergence.divergences():
        _append_violation(c, statement, "UB307", explain_divergent_wgmma(None), SECTIONS[statement.kind], lane)
    c.async_writes.check_uses(c.lanes.exists, WAITS)
    for statement, code, text, lane in c.async_writes.early_findings():
        _append_violation(c, statement, code, text, "", lane)


def _append_violation(c: Cluster, statement: Statement, code: str, text: str | Phrase, section: str, lane: int) -> None:
    op = ops.TensorCore(
        kind="end", reads=(), writes=(), wrong=(code, text), span=statement.span, text="the end of the thread",
        section=section,
    )  # fmt: skip
    c.recorded.append(op, [lane])
