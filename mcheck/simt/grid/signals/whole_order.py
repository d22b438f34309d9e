"""Whether two clusters without the others of their grid are ordered as they are in some execution of all of them.

A pair of clusters that signal (``mcheck.simt.grid.signals.linked_pair``) may have lost order that others carry between
them. Where it has lost none, a race in the pair is one of the grid.

*Conditions.*

1. The clusters have one order of their signals and waits (``mcheck.simt.grid.signals.signal_order``), no early polls,
   no looks, and draw nothing but signs.
2. No instruction of the module is a ``fence.sc``. Atomics acquire nothing: none does itself, and if signals are
   atomics, no fence of the module acquires for them. Signals of a word all release themselves, or none does, and
   likewise its waits: so none releases or acquires for another one (8.8).
3. Of what comes up to a wait of one of the two in the thread of a signal of the other, by whatever chain of signals and
   waits of all clusters, each point of release is that of a signal for which the wait waits in the pair, or is before
   it.
4. Within the two clusters nothing but barriers of all that take part, signals and waits orders anything: all other
   accesses are weak and through the generic proxy, or are those of ``cp.async``, which the thread itself completes in
   groups. So accesses of one cluster are ordered alike in all executions.

*The argument.* Take the run of ``SignalOrder``, as an interleaving of all clusters, in which signals and weak accesses
take effect one after the other, and each wait reads the last write of the phase that ends it. This is an execution: a
later write of the word may be there, but it is not ordered before the wait, for the phase of the wait is not before the
last one that the wait knows (8.10.1, 8.10.6), and an atomic of the thread itself has read a write of this phase at the
latest. Accesses and their places are those of every other execution. Order between clusters arises only where a wait
synchronises with signals of its phase, or of phases that it knows (2). So what comes before the code behind a wait are
the points of release that 3 speaks of, and each is there in the pair. A chain from an access of one cluster to one of
the other consists of order within the two (4), and of such steps: it is a chain in the pair. What the pair does not
order, this execution does not order either, and a conflict of weak accesses that is not ordered is a race, whatever
the values are (8.7.1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mcheck.frontend.ptx.module import Module
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op, performed_operation
from mcheck.ir.program import Program
from mcheck.isa.kinds import REDUCTIONS, Kind
from mcheck.simt.grid.pairs.global_places import Numbers
from mcheck.simt.grid.signals.signal_order import At, SignalOrder
from mcheck.simt.grid.signals.synchronisations import Synchronisation

ACQUIRES = ("acquire", "acq_rel", "sc")
NOWHERE = -1


def keeps_order(module: Module, orders: SignalOrder, one: int, other: int) -> bool:
    """Whether a pair of clusters has all order that there is between them in some execution of the grid: conditions 1
    to 3.
    """
    made = [s for code in orders.codes for s in code]
    plain = not orders.any_value and not any(s.looks or s.draws or s.taken is not None for s in made)
    alike = {(s.address, s.waits): s.point == s.place for s in made}
    plain = plain and all(alike[s.address, s.waits] is (s.point == s.place) for s in made)
    if not plain or not _atomics_acquire_nothing(module, made):
        return False
    reached = _Reached(orders)
    return reached.is_kept(one, other) and reached.is_kept(other, one)


def orders_by_barriers(program: Program, words: range) -> bool:
    """Whether nothing but barriers, and accesses of these words, orders what threads of a program do: condition 4."""
    return all(_is_plain(op, words) for op in {id(op): op for t in program.threads for op in t.code}.values())


def _is_plain(op: Op, words: range) -> bool:
    inner = performed_operation(op)
    match inner:
        case ops.Load() | ops.Store() | ops.Atomic():
            if inner.sem == "weak":
                return op is inner and inner.proxy == "generic"
            return isinstance(inner.address, Const) and inner.address.value in words
        case ops.Barrier():
            return inner.kind in ("sync", "red")
        case ops.Fence():
            return inner.sem != "sc" and inner.restrict is None
        case ops.Commit() | ops.WaitGroup():
            return inner.family == "cp.async"
    return isinstance(op, ops.WarpSync | ops.Collective | ops.CpAsync)


def _atomics_acquire_nothing(module: Module, made: Sequence[Synchronisation]) -> bool:
    opcodes = [s.opcode for f in module.functions.values() for s in f.body]
    fences = [o for o in opcodes if o.name in ("fence", "membar")]
    if any(o.name == "membar" or o.has("sc") for o in fences):
        return False
    atomics = [o for o in opcodes if o.kind is Kind.ATOMIC or o.kind in REDUCTIONS]
    acquiring = any(o.has(how) for o in atomics for how in ACQUIRES)
    return not acquiring and not (fences and any(s.updates for s in made))


class _Reached:
    """Up to which place in the code of each cluster everything comes before the code behind a wait."""

    def __init__(self, orders: SignalOrder) -> None:
        self.orders = orders
        self.known: dict[At, Numbers] = {}

    def is_kept(self, number: int, other: int) -> bool:
        """Whether the waits of a cluster learn in a pair all that they learn of another one."""
        learnt = self.orders.learnt(number, other)
        for k in self.orders.waiting[number]:
            reach = int(self.behind((number, k))[other])
            told = None if k not in learnt else self.orders.at((other, learnt[k])).point
            if reach > (NOWHERE if told is None else told):
                return False
        return True

    def behind(self, wait: At) -> Numbers:
        """By cluster, the last point of release that comes before the code behind a wait."""
        todo = [wait]
        while todo:
            at = todo[-1]
            needed = [w for s in self._signals(at) for w in self._acquired(s) if w not in self.known]
            if at in self.known or not needed:
                self.known.setdefault(at, self._behind(at))
                todo.pop()
            else:
                todo += needed
        return self.known[wait]

    def _behind(self, wait: At) -> Numbers:
        out = np.full(len(self.orders.codes), NOWHERE, np.int64)
        for signal in self._signals(wait):
            for before in self._acquired(signal):
                np.maximum(out, self.known[before], out=out)
            point = self.orders.at(signal).point
            assert point is not None  # a signal for another cluster releases
            out[signal[0]] = max(out[signal[0]], point)
        return out

    def _signals(self, wait: At) -> list[At]:
        """The signals of other clusters that end a wait."""
        word = self.orders.words[self.orders.at(wait).address]
        return [s for s in word.phases[self.orders.ended[wait]].signals if s[0] != wait[0]]

    def _acquired(self, signal: At) -> list[At]:
        """The waits for other clusters of which a signal hands on what they have acquired."""
        released = self.orders.at(signal).point
        out: list[At] = []
        for k in self.orders.waiting[signal[0]]:
            point = self.orders.at((signal[0], k)).point
            if k < signal[1] and point is not None and released is not None and point <= released:
                out.append((signal[0], k))
        return out
