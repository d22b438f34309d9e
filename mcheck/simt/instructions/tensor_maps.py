"""Tensor maps that a kernel modifies and publishes (PTX ISA 9.7.9.28, 9.7.13.16).

The bytes of a map encode its fields (``mcheck.semantics.tensor_map_values``), so that they may be copied through shared
memory word by word. The result of ``tensormap.cp_fenceproxy`` in global memory is kept by address.
"""

from __future__ import annotations

import numpy as np

from mcheck.base.records import replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lowering import operation_template
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.isa.kinds import Kind
from mcheck.semantics.tensor_map_values import MAP_SIZE, replace_map_field
from mcheck.semantics.undefined import Misuse
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, compiles
from mcheck.simt.execution.lanes import WARP, Mask, leader_lanes
from mcheck.simt.instructions.access_operands import fetch_lanes, to_generic, visible_accesses
from mcheck.simt.instructions.recording import make_recorder

WORD = 8


@compiles(Kind.MAP_UPDATE)
def replace_field_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``tensormap.replace``: set one field of a map in shared or global memory."""
    op = operation_template(unit.function, statement)
    assert isinstance(op, ops.TensormapReplace)
    record = make_recorder(k, unit, statement, at, op)

    def run(c: Cluster, mask: Mask) -> Mask | None:
        lanes, found = record(c, mask, {})
        if not found:
            return None
        for j in range(len(lanes)):
            address = int(to_generic(found["address"][0][j : j + 1])[0])
            c.tensor.record_stores(np.array([address], np.uint64), MAP_SIZE)
            ordinal = int(found["ordinal"][0][j]) if "ordinal" in found else None
            contents = c.store.read_map(address)
            if contents is None:
                continue  # the engine reports a copy that uses it
            try:
                c.store.write_map(
                    address, replace_map_field(op.field_name, contents, int(found["value"][0][j]), ordinal)
                )
            except Misuse:
                return mask  # the engine reports it
        return mask

    return run


@compiles(Kind.MAP_PUBLICATION)
def publish_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``tensormap.cp_fenceproxy``: the warp copies the map and releases it to the tensormap proxy.

    All of its lanes are present and read the map; one of them does the copy and the release.
    """
    op = operation_template(unit.function, statement)
    assert isinstance(op, ops.TensormapCopyFence)
    record = make_recorder(k, unit, statement, at, op)
    source = k.fetch(unit, statement.operands[1])
    read = ops.Load(
        dsts=(None,) * (MAP_SIZE // WORD), address=Const(0), type="b64", space="shared::cta",
        span=statement.span, text=statement.text, section=op.section,
    )  # fmt: skip

    def run(c: Cluster, mask: Mask) -> Mask | None:
        rows = mask.reshape(-1, WARP)
        chosen = np.zeros_like(rows)
        chosen[np.arange(len(rows)), leader_lanes(rows, last=c.last_lane_leads)] = rows.any(axis=1)
        leads = chosen.reshape(-1)
        lanes, found = record(c, leads, {})
        if not found:
            return None
        for j in range(len(lanes)):
            contents = c.store.read_map(int(found["src"][0][j]))
            if contents is not None:
                c.store.write_map(int(found["dst"][0][j]), contents)
        others = np.flatnonzero(mask & ~leads)
        if len(others):
            address, sure = fetch_lanes(source, mask, others)
            places, those = visible_accesses(c, statement, to_generic(address), sure, others)
            if len(those):
                c.recorded.record((at, "read"), [places], those, lambda v: replace(read, address=v[0]), spread=True)
        return mask

    return run
