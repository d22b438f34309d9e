"""Two clusters that signal, without the others of their grid: other words in place of those of signals and waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcheck.base.records import replace
from mcheck.ir import ops
from mcheck.ir.expr import Const, Reg
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE, Instance, MemObject, MemoryMap
from mcheck.ir.ops import Op
from mcheck.ir.program import Program
from mcheck.ir.type_sizes import type_size
from mcheck.simt.grid.pairs.accesses_together import check_together
from mcheck.simt.grid.pairs.known_words import KnownWord
from mcheck.simt.grid.pairs.reduction import NotReducible
from mcheck.simt.grid.signals.cluster_signals import Signalling, with_threads
from mcheck.simt.grid.signals.signal_order import Links, PairLinks
from mcheck.simt.grid.signals.synchronisations import Told, read_synchronisation, synchronisations_at

WORD = "u32"
"""The type of the words to which the clusters of a pair signal."""
GAP = 256
"""Bytes of which a multiple lies between objects of memory."""


def link_pair(
    program: Program, both: Sequence[Signalling], links: PairLinks, ticket: KnownWord | None
) -> tuple[Program, range]:
    """The program of two clusters with their signals and waits replaced, and the addresses of the words that they have
    instead, one for each signal that is waited for. Raises ``NotReducible`` if they do not do together what each
    does alone.
    """
    check_together(program, both)
    threads = list(program.threads)
    most = 1 + max(max(one, default=0) for one in links)
    memory, words = _with_words(program.memory, len(links) * most)
    for which, one in enumerate(both):
        if one.thread is None:
            continue
        at = which * (len(threads) // len(both)) + one.thread
        code = threads[at].code
        if tuple(read_synchronisation(code, ticket, one.told)) != one.code:
            raise NotReducible("two clusters together signal otherwise than each alone")
        mine, other = words[which * most :][:most], words[(1 - which) * most :][:most]
        threads[at] = replace(threads[at], code=tuple(_relink(code, links[which], mine, other, ticket, one.told)))
    return with_threads(replace(program, memory=memory), tuple(threads)), words


def _with_words(memory: MemoryMap, count: int) -> tuple[MemoryMap, range]:
    """The memory with more words, and their addresses."""
    size = type_size(WORD)
    end = max((i.base + i.object.size for i in memory.instances if i.base < SHARED_BASE), default=GLOBAL_BASE)
    base = (end // GAP + 2) * GAP
    words = MemObject(
        name="signals of the clusters", space="global", elem=WORD, elem_size=size, dims=(count,), align=size,
        size=size * count, init=bytes(size * count),
    )  # fmt: skip
    instances = sorted((*memory.instances, Instance(words, base, base)), key=lambda instance: instance.base)
    return MemoryMap(tuple(instances)), range(base, base + size * count, size)


def _relink(
    code: Sequence[Op], links: Links, mine: range, other: range, ticket: KnownWord | None, told: Told
) -> Iterator[Op]:
    """The code of a thread with its signals to, and its waits for, these words."""
    given = iter(links)
    for place, op in enumerate(code):
        found = synchronisations_at(code, place, ticket, told)
        if not found or any(one.looks for one in found):
            yield op
        for one in found:
            number = next(given)
            match op:
                case _ if not number:
                    pass
                case ops.Await(inner=ops.Load() as inner):
                    load = replace(inner, address=Const(other[number]), type=WORD, dsts=(Reg("spun"),))
                    yield replace(op, inner=load, compare=("==", Const(1)))
                case ops.Await(inner=ops.Atomic() as inner):  # a lock
                    yield _wait_like(inner, other[number])
                case ops.Atomic() if one.waits:  # of the number that was drawn
                    yield _wait_like(op, other[number])
                case ops.Atomic():
                    yield replace(op, op="exch", address=Const(mine[number]), type=WORD, srcs=(Const(1),))
                case ops.Store():
                    yield replace(op, address=Const(mine[number]), type=WORD, srcs=(Const(1),))


def _wait_like(op: ops.Atomic, word: int) -> ops.Await:
    """A wait for a word that acquires as an atomic does."""
    load = ops.Load(
        dsts=(Reg("spun"),), address=Const(word), type=WORD,
        sem="acquire" if op.sem in ("acquire", "acq_rel") else "relaxed", scope=op.scope, space=op.space,
        span=op.span, text=op.text,
    )  # fmt: skip
    return ops.Await(inner=load, compare=("==", Const(1)), span=op.span, text=op.text)
