"""Early accesses: what threads of a dependent grid access before they wait for the preceding grids (PTX ISA
9.7.13.13).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mcheck.base.phrase import Site, say
from mcheck.base.records import dataclass
from mcheck.findings import catalogue
from mcheck.findings.finding import Access, Finding
from mcheck.frontend.ptx import module as ptx
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr, Lanes
from mcheck.ir.ops import Op, performed_operation
from mcheck.ir.program import Program
from mcheck.ir.type_sizes import type_size
from mcheck.semantics.tensor_map_values import MAP_SIZE, decode
from mcheck.simt.execution.cluster import Cluster
from mcheck.simt.execution.lanes import WARP, Mask

CODE = "RACE011"
_WHY = {
    "read": "writes of the preceding grids may not be visible yet",
    "write": "the preceding grids may still read or write there",
}


@dataclass(frozen=True, slots=True)
class Early:
    """An access of global memory by a lane, and the later wait of the same lane."""

    lane: int
    op: Op
    kind: str
    address: int
    size: int
    wait: ptx.Statement


def record_early_accesses(c: Cluster, mask: Mask, wait: ptx.Statement) -> None:
    """Record the accesses of these lanes before their wait, each pair of places in the code once."""
    seen: set[int] = set()
    for lane in np.flatnonzero(mask).tolist():
        for op in c.recorded.code[lane]:
            if id(op) in seen:
                continue
            seen.add(id(op))
            for kind, address, size in _accesses(c, performed_operation(op), lane):
                found = c.places.memory.find(address)
                if found is not None and found.object.space == "global":
                    c.recorded.early_accesses.setdefault(
                        (op.span, kind, wait.span), Early(lane, op, kind, address, size, wait)
                    )
                    break


def _accesses(c: Cluster, op: Op, lane: int) -> Iterator[tuple[str, int, int]]:
    """The accesses that may be of global memory: kind, address, bytes."""

    def at(expr: Expr) -> int:
        match expr:
            case Const(value):
                return value
            case Lanes(values):
                return values[lane % WARP]
        return -1

    match op:
        case ops.Load():
            yield "read", at(op.address), type_size(op.type) * len(op.dsts)
        case ops.Store():
            yield "write", at(op.address), type_size(op.type) * len(op.srcs)
        case ops.Atomic():
            yield "write", at(op.address), type_size(op.type)
        case ops.CpAsync():
            yield "read", at(op.src), at(op.size)
        case ops.BulkCopy():
            yield "write", at(op.dst), at(op.size)
            yield "read", at(op.src), at(op.size)
        case ops.AsyncStore():
            yield "write", at(op.address), type_size(op.type) * len(op.srcs)
        case ops.TensormapReplace():
            yield "write", at(op.address), MAP_SIZE
        case ops.TensormapCopyFence():
            yield "write", at(op.dst), MAP_SIZE
        case ops.TensorCopy():
            contents = c.store.read_map(at(op.tensor_map))
            spec = None if contents is None else decode(contents)
            if spec is not None:
                yield "read" if op.kind == "load" else "write", spec.global_address, 0


def early_finding(early: Early, program: Program, width: int, profile: str) -> Finding:
    """The finding of an early access; a CTA has ``width`` lanes."""
    entry = catalogue.get(CODE)
    found = program.memory.find(early.address)
    assert found is not None
    cta, inside = divmod(early.lane, width)
    name = f"{f'cta{cta}.' if program.clustered else ''}warp{inside // WARP}[{inside % WARP}]"
    start = early.address - found.base
    access = Access(
        thread=name, instruction=early.op.text, span=early.op.span, object=found.label,
        bytes=(start, start + early.size) if early.size else (0, found.object.size), access=early.kind,
        proxy="async" if isinstance(early.op, ops.BulkCopy | ops.TensorCopy) else "generic",
    )  # fmt: skip
    waits = Access(thread=name, instruction=early.wait.text, span=early.wait.span)
    done = "read" if early.kind == "read" else "written"
    waits_at = Site(early.wait.span.line, early.wait.span.column)
    said = say("{} is {} before the griddepcontrol.wait in {}: {}", found.thing(), done, waits_at, _WHY[early.kind])
    return Finding(
        code=CODE, kind=entry.kind, severity=entry.severity(profile), said=said, accesses=(access, waits),
        fixes=(entry.fix,), section=entry.section,
    )  # fmt: skip
