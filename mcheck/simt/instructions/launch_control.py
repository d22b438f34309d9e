"""The cancel request of clusterlaunchcontrol, whose response arrives asynchronously (PTX ISA 9.7.13.17)."""

from __future__ import annotations

import numpy as np

from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.memory_layout import LAUNCH_CONTROL
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.memory import SHARED_WINDOW
from mcheck.isa.kinds import Kind
from mcheck.semantics import mbarrier
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, compiles
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.launch_answers import MAX_WON, following_clusters
from mcheck.simt.instructions.access_operands import fetch_lanes, note_order, to_generic

SIZE = 16
"""Bytes of a response."""


@compiles(Kind.CANCEL_REQUEST)
def try_cancel_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``try_cancel``: the response is written through the async proxy and counts on the mbarrier, with
    multicast in every CTA of the cluster at the same place.
    """
    fetches = [k.fetch(unit, operand) for operand in statement.operands[:2]]
    source = k.places.symbols["", LAUNCH_CONTROL]
    others_wait = bool(following_clusters(k.lanes.launch, 1))
    everywhere = statement.opcode.prefixed("multicast") is not None

    def run(c: Cluster, mask: Mask) -> Mask | None:
        c.check_assumed_failures(mask)
        c.note_effect(mask)
        lanes = np.flatnonzero(mask)
        values = []
        for fetch in fetches:
            value, sure = fetch_lanes(fetch, mask, lanes)
            if (sure & taint.UNKNOWN).any():
                c.give_up(mask, "the address of the clusterlaunchcontrol response depends on data")
                return None
            note_order(c, sure, "address of the clusterlaunchcontrol response")
            values.append(to_generic(value).tolist())
        if others_wait:
            said = f"clusterlaunchcontrol wins at most {MAX_WON} clusters, in the order of the grid"
            c.recorded.note_gap(said, statement.span)
        ctas = c.lanes.cluster_size
        ranks = range(ctas) if everywhere else ()
        for lane, target, bar in zip(lanes.tolist(), *values, strict=True):
            op = ops.BulkCopy(
                dst=Const(target), src=Const(source), size=Const(SIZE), mbar=Const(bar), dst_space="shared::cluster",
                src_space="global", cta_mask=Const((1 << ctas) - 1) if everywhere else None,
                span=statement.span, text=statement.text, section="9.7.13.17",
            )  # fmt: skip
            c.recorded.append(c.recorded.intern((at, target, bar), lambda op=op: op), [lane])  # type: ignore[misc]
            answer = np.array([c.cancel_responses.next_response(), 0], np.uint64)
            for shift in (
                [0] if not ranks else [(rank - int(c.lanes.cta[lane]) % ctas) * SHARED_WINDOW for rank in ranks]
            ):
                places = np.array([(target + shift + k) % (1 << 64) for k in (0, 8)], np.uint64)
                c.store.save(places, 8, np.zeros(2, np.int64), answer, np.zeros(2, np.uint8))
                c.tensor.record_stores(places[:1], SIZE)
                c.apply_to_mbarrier(bar + shift, lambda s: mbarrier.complete_tx(s, SIZE))
        return mask

    return run
