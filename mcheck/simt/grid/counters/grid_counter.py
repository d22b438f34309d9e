"""The counter of a grid: a word of global memory to which each cluster adds one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mcheck.base.budget import Limit
from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.memory_layout import MemoryLayout
from mcheck.frontend.ptx.module import Module, Statement
from mcheck.ir import ops
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, Fetch
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.loop_visits import statements, with_action
from mcheck.simt.grid.pairs.known_words import KnownWord, check_initial_words, known_word
from mcheck.simt.grid.pairs.reduction import MAX_CLUSTERS, NotReducible, check_statements, clusters_of, is_box
from mcheck.simt.instructions.access_operands import to_generic
from mcheck.simt.trace_extraction import follow_paths

COUNTED_TYPES = ("u32", "s32", "b32", "u64", "s64", "b64")


def find_counter(module: Module, launch: Launch, limit: Limit) -> KnownWord:
    """The word in which the executed cluster counts itself: the first one that it adds to and whose initial value is
    given. Raises ``NotReducible``.
    """
    if len(clusters_of(launch)) > MAX_CLUSTERS:
        raise NotReducible(f"there are more than {MAX_CLUSTERS} clusters", applies=False)
    missing = NotReducible("no cluster counts itself in a word whose initial value is given", applies=False)
    body = [s for f in module.functions.values() for s in f.body]
    if not (_knows_words(module, launch) and any(map(_adds, body))):
        raise missing
    check_statements(module)
    one = replace(launch, group=(launch.executed_clusters[0],))
    try:
        for _ in follow_paths(module, one, limit, _FirstCount):
            break
    except _Found as found:
        if found.counter.first + len(clusters_of(launch)) >= 1 << 8 * found.counter.size - 1:
            raise NotReducible("the counter may overflow") from None
        if is_box(launch):
            check_initial_words(found.places, [found.counter])
        return found.counter
    raise missing


def _knows_words(module: Module, launch: Launch) -> bool:
    """Whether the initial value of some word of global memory may be given."""
    told = any(v.space == "global" and v.is_told for _, v in module.all_variables)
    return told or launch.cooperative or any(buffer.initial for buffer in launch.buffers)


def _adds(statement: Statement) -> bool:
    """Whether an instruction may count a cluster."""
    opcode = statement.opcode
    if statement.kind not in (Kind.ATOMIC, Kind.REDUCTION) or not opcode.has("add", "inc"):
        return False
    return opcode.type in COUNTED_TYPES and opcode.vector == 1 and statement.address is not None


class _Found(Exception):
    """A cluster is about to count itself."""

    def __init__(self, counter: KnownWord, places: MemoryLayout) -> None:
        super().__init__()
        self.counter, self.places = counter, places


@dataclass(slots=True)
class _FirstCount:
    """The watch that raises ``_Found``: what a cluster does then may be to wait for others."""

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        """Instrument the atomics."""
        out = list(steps)
        for at, statement, unit in statements(compiler):
            if _adds(statement):
                size = type_size(statement.opcode.type)
                before = self._look(compiler, compiler.fetch(unit, statement.place), size)
                out[at] = with_action(compiler, unit, statement, before, steps[at])
        return out

    def _look(self, compiler: Compiler, fetch: Fetch, size: int) -> Callable[[Cluster, Mask], None]:
        def before(c: Cluster, mine: Mask) -> None:
            del c
            address = to_generic(np.broadcast_to(fetch()[0], mine.shape)[mine]).astype(np.int64)
            for at in distinct(address).tolist():
                counter = known_word(compiler.places, at, size)
                if counter is not None:
                    raise _Found(counter, compiler.places)

        return before


def is_count(op: ops.Atomic) -> bool:
    """Whether an atomic may count a cluster."""
    return op.op in ("add", "inc") and op.type in COUNTED_TYPES
