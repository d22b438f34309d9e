"""``wmma.load`` and ``wmma.store`` (PTX ISA 9.7.15.4.3, 9.7.15.4.4): a warp moves a matrix, line by line.

Which lane moves which elements is not specified, so the lines of the matrix are assigned to the lanes in turn.
"""

from __future__ import annotations

import re

import numpy as np

from mcheck.base.errors import Unsupported
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.ir import ops
from mcheck.ir.expr import Expr, Reg
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import FRAGMENTS, Kind
from mcheck.isa.opcode import GENERIC, Opcode
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, compiles
from mcheck.simt.execution.lanes import WARP, Mask
from mcheck.simt.instructions.access_operands import fetch_lanes, to_generic, visible_accesses

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_SMALL = {"s4": 4, "u4": 4, "b1": 1}
ALIGNED = 16
"""Alignment of lines in bytes, whatever the stride."""


def matrix_lines(opcode: Opcode) -> tuple[int, int, int]:
    """The number of lines of a matrix in memory, the elements of a line, the bits of an element.

    Raises ``Unsupported`` if the opcode does not say.
    """
    shape = next((m for m in map(_SHAPE.fullmatch, opcode.parts) if m), None)
    if shape is None:
        raise Unsupported("a matrix of unknown shape")
    m, n, k = map(int, shape.groups())
    height, width = {"a": (m, k), "b": (k, n)}.get(opcode.parts[2], (m, n))
    bits = _SMALL.get(opcode.type) or (32 if opcode.type == "tf32" else 8 * type_size(opcode.type))
    return (height, width, bits) if opcode.has("row") else (width, height, bits)


@compiles(*FRAGMENTS)
def fragment_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``wmma.load`` and ``wmma.store``; ``wmma.mma`` only computes."""
    loads = statement.kind is Kind.FRAGMENT_LOAD
    count, width, bits = matrix_lines(statement.opcode)
    place = next(n for n, o in enumerate(statement.operands) if isinstance(o, ptx.Address))
    fetch = k.fetch(unit, statement.operands[place])
    after = statement.operands[place + (1 if loads else 2) :]
    stride = k.fetch(unit, after[0] if after else ptx.Immediate(width))
    opaque = k.forget_results(unit, statement) if loads and k.is_needed(unit, statement) else None
    size = max(width * bits // 8, 4)
    pieces = [(start, min(ALIGNED, size - start) // 4) for start in range(0, size, ALIGNED)]
    common = {
        "span": statement.span, "text": statement.text, "section": "9.7.15.4.3" if loads else "9.7.15.4.4",
        "type": "b32", "space": "shared::cta" if "shared" in statement.opcode.spaces else GENERIC,
    }  # fmt: skip

    def made(address: Expr, words: int) -> ops.Op:
        if loads:
            return ops.Load(dsts=(None,) * words, address=address, **common)  # type: ignore[arg-type]
        return ops.Store(srcs=(Reg("data"),) * words, address=address, **common)  # type: ignore[arg-type]

    def run(c: Cluster, mask: Mask) -> Mask:
        c.check_assumed_failures(mask)
        c.note_effect(mask)
        lanes = np.flatnonzero(mask)
        lanes = lanes[lanes % WARP < count]
        address, sure = fetch_lanes(fetch, mask, lanes)
        step, known = fetch_lanes(stride, mask, lanes)
        line = (lanes % WARP).astype(np.uint64)
        address = to_generic(address) + line * step * np.uint64(bits) // np.uint64(8)
        if not loads:
            c.tensor.record_stores(address, size)
            for start in address.tolist() if k.code.stores_decide else ():
                c.store.forget(start, size)
        found, those = visible_accesses(c, statement, address, sure | known, lanes)
        for start, words in pieces if len(those) else ():
            where = found + np.uint64(start)
            c.recorded.record((at, start), [where], those, lambda v, words=words: made(v[0], words), spread=True)  # type: ignore[misc]
        if opaque is not None:
            opaque(c, mask)
        return mask

    return run
