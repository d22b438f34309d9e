"""``st.bulk``: ranges of shared memory become zero (PTX ISA 9.7.9.13)."""

from __future__ import annotations

import numpy as np

from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lowering import operation_template
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, compiles
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.instructions.recording import make_recorder


@compiles(Kind.FILL)
def fill_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``st.bulk``: each lane stores zeros to a range."""
    record = make_recorder(k, unit, statement, at, operation_template(unit.function, statement))

    def run(c: Cluster, mask: Mask) -> Mask | None:
        _, found = record(c, mask, {})
        if not found:
            return None
        for address, size in zip(found["address"][0].tolist(), found["size"][0].tolist(), strict=True):
            c.store.clear(address, size)
            c.tensor.record_stores(np.array([address], np.uint64), size)
            if c.strong_writes.latest:
                c.strong_writes.add_weak([address], size)
        return mask

    return run
