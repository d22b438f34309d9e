"""CTA pairs: two CTAs of a cluster whose ranks differ in the last bit (PTX ISA 9.7.16.5.1), and the operations that a
warp of each has to execute.

``tcgen05.alloc``, ``dealloc`` and ``relinquish_alloc_permit`` with ``.cta_group::2`` may block until the peer CTA
executes its own (9.7.16.5). They are followed as if they did: a program that relies on the contrary hangs then.
"""

from __future__ import annotations

from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.frontend.ptx.module import Statement
from mcheck.ir import ops
from mcheck.semantics import tensor_rules
from mcheck.simt.execution.lanes import Lanes, Mask


def peer_cta(lanes: Lanes, cta: int) -> int | None:
    """The other CTA of the pair, if the cluster has it."""
    rank = cta % lanes.cluster_size
    return None if rank ^ 1 >= lanes.cluster_size else cta - rank + (rank ^ 1)


def missing_peer(statement: Statement) -> ops.TensorCore:
    """An operation at which a warp waits forever for the peer CTA."""
    what = statement.opcode.mode
    return ops.TensorCore(
        kind=what, reads=(), writes=(), wrong=tensor_rules.missing_peer(what), span=statement.span,
        text=statement.text, section="9.7.16.5",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Waiting:
    """The lanes of a CTA that wait at a statement for the peer CTA."""

    cta: int
    mask: Mask
    statement: Statement


@dataclass(slots=True)
class PairMeetings:
    """How often each CTA has executed each operation of its pair, and who waits for the peer CTA."""

    counts: dict[tuple[int, str], int] = field(default_factory=dict)
    operands: dict[tuple[int, str, int], int | None] = field(default_factory=dict)
    waiting: list[Waiting] = field(default_factory=list)

    def arrive(self, cta: int, peer: int, what: str, operand: int | None) -> tuple[bool, int | None]:
        """Count an operation of a CTA. Returns whether the peer CTA has executed its own, and with which operand."""
        number = self.counts.get((cta, what), 0)
        self.counts[cta, what] = number + 1
        self.operands[cta, what, number] = operand
        return self.counts.get((peer, what), 0) > number, self.operands.get((peer, what, number))

    def release(self, peer: int, what: str) -> list[Waiting]:
        """The lanes of the peer CTA that wait first for such an operation, which wait no longer."""
        found = [one for one in self.waiting if one.cta == peer and one.statement.opcode.mode == what][:1]
        self.waiting = [one for one in self.waiting if all(one is not other for other in found)]
        return found
