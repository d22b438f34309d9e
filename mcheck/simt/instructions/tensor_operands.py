"""The operands of the tcgen05 instructions, and how what is wrong with them is recorded (PTX ISA 9.7.16)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from mcheck.base.phrase import plain
from mcheck.base.records import replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.semantics.tensor_rules import Fault, no_pair, other_group
from mcheck.simt.execution.cluster import Cluster
from mcheck.simt.execution.compiler import Fetch
from mcheck.simt.execution.cta_pairs import peer_cta
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.tensor_memory import Range
from mcheck.simt.instructions.access_operands import Indices, fetch_lanes, note_order

SECTION = "9.7.16"
PAIR = "cta_group::2"

Values = list[Word]
"""The operands of the lanes that execute an instruction."""
Group = tuple[list[int], int, Indices]
"""Operands, their owner, and the lanes that have them."""


def read_operands(c: Cluster, fetches: list[Fetch], mask: Mask, what: str) -> tuple[Indices, Values] | None:
    """The lanes and the values of their operands; ``None``, with the lanes given up, where one of them is unknown."""
    c.check_assumed_failures(mask)
    c.note_effect(mask)
    lanes: Indices = np.flatnonzero(mask)
    values = []
    for fetch in fetches:
        value, sure = fetch_lanes(fetch, mask, lanes)
        if (sure & taint.UNKNOWN).any():
            c.give_up(mask, f"the {what} depends on data")
            return None
        note_order(c, sure, what)
        values.append(value)
    return lanes, values


def group_lanes(lanes: Indices, values: Values, owners: Indices) -> list[Group]:
    """The lanes grouped by operands and owner: their CTA, or their warp."""
    table = np.stack([*values, owners[lanes].astype(np.uint64)])
    rows, back = np.unique(table, axis=1, return_inverse=True)
    back = back.reshape(-1)
    out = []
    for column in range(rows.shape[1]):
        *found, owner = rows[:, column].tolist()
        out.append((found, owner, lanes[back == column]))
    return out


def make_core_op(kind: str, reads: list[Range], writes: list[Range], statement: ptx.Statement) -> ops.TensorCore:
    """An operation with these ranges of shared and tensor memory."""
    return ops.TensorCore(
        kind=kind, reads=const_ranges(reads), writes=const_ranges(writes),
        span=statement.span, text=statement.text, section=SECTION,
    )  # fmt: skip


def const_ranges(found: Iterable[Range]) -> tuple[tuple[Const, Const], ...]:
    """The distinct ranges, as operands."""
    return tuple((Const(at), Const(size)) for at, size in dict.fromkeys(found))


def record_misuse(c: Cluster, fault: Fault, statement: ptx.Statement, lanes: Indices) -> None:
    """Record a violation in the order that is followed, if threads can have that order."""
    if c.recorded.order_is_possible:
        op = replace(make_core_op(statement.opcode.mode, [], [], statement), wrong=fault)
        c.recorded.append(op, lanes)
    else:
        c.recorded.note_gap(plain(fault[1]), statement.span)


def lanes_that_differ(groups: list[Group]) -> list[Indices]:
    """The lanes of each group by operands and warp that shares its warp with another one."""
    counts = Counter(warp for _, warp, _ in groups)
    return [lanes for _, warp, lanes in groups if counts[warp] > 1]


def differing(what: str) -> Fault:
    """What all lanes of a warp have to share, and do not."""
    return "UB109", f"has {what} that differ in the lanes of the warp"


def participating_ctas(c: Cluster, statement: ptx.Statement, cta: int) -> list[int]:
    """The CTAs whose memory an instruction accesses: with ``cta_group::2`` both of the pair (9.7.16.5)."""
    peer = peer_cta(c.lanes, cta) if statement.opcode.has(PAIR) else None
    return [cta] if peer is None else [cta, peer]


def check_cta_group(c: Cluster, statement: ptx.Statement, lanes: Indices) -> None:
    """All tcgen05 instructions of a kernel name the same ``.cta_group``, and the pair has to be there (9.7.16.7.1)."""
    first = c.tensor.cta_group
    if first is None:
        first = c.tensor.cta_group = statement
    mine, others = (s.opcode.prefixed("cta_group::") for s in (statement, first))
    if mine != others:
        record_misuse(c, other_group(str(mine), str(others), first.span.line), statement, lanes[:1])
    cta = int(c.lanes.cta[lanes[0]])
    if mine == PAIR and peer_cta(c.lanes, cta) is None:
        record_misuse(c, no_pair(cta % c.lanes.cluster_size), statement, lanes[:1])
