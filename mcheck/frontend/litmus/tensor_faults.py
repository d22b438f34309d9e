"""What the threads of a sketch may not do with tensor memory (PTX ISA 9.7.16), as far as their code alone says it.

Which lane of a warp allocates and frees is settled here, too. The order of different threads is not known: what is
found of allocations are their numbers in each CTA, and what is found of uses and collectors is the order in one thread.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from mcheck.base.errors import Span, Unsupported
from mcheck.base.records import dataclass, replace
from mcheck.frontend.litmus.tensor_memory import columns_of
from mcheck.ir.expr import Const
from mcheck.ir.memory import Cta, Instance, MemoryMap
from mcheck.ir.ops import Alu, Branch, Op, TensorCommit, TensorCore, TensorMove
from mcheck.ir.program import Thread
from mcheck.semantics import tensor_rules
from mcheck.semantics.collectors import Collector, collector_use
from mcheck.semantics.tensor_rules import AllocationPermit, Fault

WARP = 32
PERMIT = "relinquish_alloc_permit"
ALLOCATING = ("alloc", "dealloc", PERMIT)
"""What a warp does, of a pair one of each CTA."""
PIPED = ("mma", "cp", "shift")
PAIR = "cta_group::2"
_GROUP = re.compile(r"cta_group::\d")
_COLLECTOR = re.compile(r"collector::\w+::\w+")
Place = tuple[int, int]
"""A thread and a position in its code."""


def find_tensor_faults(threads: tuple[Thread, ...], memory: MemoryMap) -> tuple[Thread, ...]:
    """The threads, with each allocation made by one lane of its warp, and with what is wrong."""
    found = _Faults(threads, memory)
    found.find()
    return tuple(found.settled(k, thread) for k, thread in enumerate(threads))


def _name(op: Op) -> str:
    """The name of an operation on tensor memory; empty for any other."""
    if isinstance(op, TensorCore):
        return op.kind
    return PERMIT if isinstance(op, Alu) and op.text.startswith(f"tcgen05.{PERMIT}") else ""


def _group(op: Op) -> str | None:
    """The ``.cta_group`` of an operation."""
    if not isinstance(op, TensorCore | TensorCommit) and not _name(op):
        return None
    found = _GROUP.search(op.text)
    return found[0] if found is not None else None


@dataclass(frozen=True, slots=True)
class _Step:
    """An operation that a warp executes once."""

    place: Place
    op: Op
    columns: int


class _Faults:
    """What is wrong with the operations of threads, by their places."""

    def __init__(self, threads: tuple[Thread, ...], memory: MemoryMap) -> None:
        self.threads = threads
        self.ctas = {t.place.cta.number: t.place.cta for t in threads}
        self.held = {n: [i for i in memory.instances if _is_tensor_of(i, cta)] for n, cta in self.ctas.items()}
        self.taken = {n: columns_of(i.object for i in held) for n, held in self.held.items()}
        self.executing: dict[tuple[int, int, Span | None], list[int]] = defaultdict(list)
        for thread in threads:
            for op in {op.span: op for op in thread.code if _name(op) in ALLOCATING}.values():
                self.executing[*thread.place.own_warp, op.span].append(thread.place.lane)
        self.straight = [_is_straight(thread) for thread in threads]
        self.steps: dict[tuple[int, str], list[_Step]] = defaultdict(list)
        for place, op in self._operations():
            cta = self.threads[place[0]].place.cta.number
            if _name(op) in ALLOCATING and self._leads(place[0], op):
                self.steps[cta, _name(op)].append(_Step(place, op, self._columns(cta, op)))
        self.faults: dict[Place, Fault] = {}
        self.ends: dict[int, list[Op]] = defaultdict(list)

    def find(self) -> None:
        """Find all of it; what is found first of an operation stays."""
        self._find_groups()
        for cta in self.ctas.values():
            self._find_misuse(cta)
        self._find_missing_peers()
        for k, thread in enumerate(self.threads):
            if self.straight[k]:
                self._find_uses(k, thread)
        self._find_collectors()

    def settled(self, k: int, thread: Thread) -> Thread:
        """A thread with what it does of allocations, and with what is wrong."""
        code = [self._settled((k, at), op) if _concerns(op) else op for at, op in enumerate(thread.code)]
        return replace(thread, code=(*code, *self.ends.get(k, ())))

    def _settled(self, place: Place, op: Op) -> Op:
        """An allocation or its end is of one lane of the warp, or of each lane for its rows."""
        thread, fault = self.threads[place[0]], self.faults.get(place)
        if isinstance(op, TensorCore) and op.kind in ALLOCATING:
            by_rows = op.kind == "dealloc" and len(self._lanes(thread, op)) == WARP
            if not by_rows and not self._leads(place[0], op):
                return Alu(op="nop", type="b32", dsts=(), srcs=(), span=op.span, text=op.text, section=op.section)
            if op.kind == "dealloc" and not by_rows:
                held = self.held[thread.place.cta.number]
                op = replace(op, writes=tuple((Const(i.base), Const(i.object.size)) for i in held))
        if fault is None:
            return op
        if isinstance(op, TensorCore | TensorCommit | TensorMove):
            return replace(op, wrong=fault)
        return TensorCore(kind=PERMIT, reads=(), writes=(), wrong=fault, span=op.span, text=op.text, section=op.section)

    # --- who executes what ----------------------------------------------------------------------------------------

    def _operations(self) -> Iterator[tuple[Place, Op]]:
        for k, thread in enumerate(self.threads):
            for at, op in enumerate(thread.code):
                if _concerns(op):
                    yield (k, at), op

    def _lanes(self, thread: Thread, op: Op) -> list[int]:
        return self.executing[*thread.place.own_warp, op.span]

    def _leads(self, k: int, op: Op) -> bool:
        """Whether a thread stands for the lanes of its warp that execute an operation."""
        return self.threads[k].place.lane == min(self._lanes(self.threads[k], op))

    def _columns(self, cta: int, op: Op) -> int:
        columns = op.columns if isinstance(op, TensorCore) else None
        return columns.value if isinstance(columns, Const) else self.taken[cta]

    def _is_counted(self, ctas: Iterable[int]) -> bool:
        """Whether how often these CTAs allocate and free does not depend on what they read."""
        wanted = set(ctas)
        return all(s for s, t in zip(self.straight, self.threads, strict=True) if t.place.cta.number in wanted)

    def _report(self, place: Place, fault: Fault | None) -> None:
        if fault is not None:
            self.faults.setdefault(place, fault)

    # --- the rules ------------------------------------------------------------------------------------------------

    def _find_groups(self) -> None:
        """All instructions name the same group, and a pair has two CTAs (9.7.16.5)."""
        grouped = [(place, op, group) for place, op in self._operations() if (group := _group(op)) is not None]
        spans = [(op.span, group) for _, op, group in grouped if op.span is not None]
        if not spans:
            return
        first, wanted = min(spans, key=lambda one: (one[0].line, one[0].column))
        there = {(cta.gpu, cta.cluster, cta.rank) for cta in self.ctas.values()}
        for place, _, group in grouped:
            cta = self.threads[place[0]].place.cta
            if group != wanted:
                self._report(place, tensor_rules.other_group(group, wanted, first.line))
            elif group == PAIR and (cta.gpu, cta.cluster, cta.rank ^ 1) not in there:
                self._report(place, tensor_rules.no_pair(cta.rank))

    def _find_misuse(self, cta: Cta) -> None:
        """What is allocated may be, and is freed; nothing else is freed (9.7.16.7.1)."""
        number = cta.number
        taken, allocated, freed = self.taken[number], self.steps[number, "alloc"], self.steps[number, "dealloc"]
        permits: dict[int, AllocationPermit] = defaultdict(AllocationPermit)
        for step in sorted((*allocated, *self.steps[number, PERMIT]), key=lambda s: s.place):
            permit = permits[step.place[0]]
            if _name(step.op) == PERMIT:
                permit.relinquish(step.op.span.line if step.op.span is not None else None)
                continue
            fault = permit.fault(step.columns)
            if fault is None and step.columns < taken:
                fault = "UB602", f"allocates {step.columns} columns of tensor memory; the .tensor objects take {taken}"
            if fault is None:
                permit.last_columns = step.columns
            self._report(step.place, fault)
        left = list(allocated)
        counted = self._is_counted([number])
        for step in freed:
            fits = next((a for a in left if a.columns == step.columns), None)
            if fits is None and (counted or not allocated):
                self._report(step.place, tensor_rules.no_allocation(step.columns))
            elif counted and fits is not None:
                left.remove(fits)
        for step in left if counted or not freed else ():
            thread, op = step.place[0], step.op
            self.ends[thread].append(
                TensorCore(
                    kind="end", reads=(), writes=(), wrong=tensor_rules.still_allocated(step.columns), span=op.span,
                    text="the end of the thread",
                )
            )  # fmt: skip

    def _find_missing_peers(self) -> None:
        """What a warp of one CTA of a pair does, one of the other does too, for the same columns (9.7.16.5)."""
        for cta in self.ctas.values():
            peer = next((c for c in self.ctas.values() if _are_pair(cta, c)), None)
            if peer is None or not self._is_counted([cta.number, peer.number]):
                continue
            for what in ALLOCATING:
                ours, theirs = (
                    [s for s in self.steps[c.number, what] if _group(s.op) == PAIR] for c in (cta, peer)
                )  # fmt: skip
                for mine, other in zip(ours, theirs, strict=False):
                    if mine.columns != other.columns and what != PERMIT:
                        said = tensor_rules.other_columns(what, mine.columns, other.columns)
                        raise Unsupported(said, mine.op.span)
                for step in ours[len(theirs) :]:
                    self._report(step.place, tensor_rules.missing_peer(what))

    def _find_uses(self, k: int, thread: Thread) -> None:
        """Columns are not used by a thread whose warp has freed all that its CTA allocates before."""
        total = len(self.steps[thread.place.cta.number, "alloc"])
        ahead = sum(_name(op) == "alloc" for op in thread.code)
        freed = 0
        for at, op in enumerate(thread.code):
            name = _name(op)
            ahead -= name == "alloc"
            freed += name == "dealloc"
            uses = isinstance(op, TensorMove) or name in PIPED
            if uses and freed and freed == total - ahead:
                self._report((k, at), tensor_rules.use_of_freed())

    def _find_collectors(self) -> None:
        """Products take the matrix from a collector that one before them has put there (9.7.16.10)."""
        products: dict[tuple[tuple[int, int, int], str], list[tuple[Place, TensorCore, str]]] = defaultdict(list)
        for place, op in self._operations():
            if isinstance(op, TensorCore) and op.kind == "mma":
                cta = self.threads[place[0]].place.cta
                written = _COLLECTOR.search(op.text)
                stationary = op.text.startswith("tcgen05.mma.ws.")
                name, use = collector_use(None if written is None else written[0], stationary=stationary)
                rank = cta.rank & ~1 if _group(op) == PAIR else cta.rank
                products[(cta.gpu, cta.cluster, rank), name].append((place, op, use))
        for (_, name), found in products.items():
            issuers = {place[0] for place, _, _ in found}
            if len(issuers) > 1 or not all(self.straight[k] for k in issuers):
                continue
            collector = Collector()
            for place, op, use in found:
                problem = collector.apply(use, _kept_matrix(op, name), (), [place[0]])
                if problem is not None:
                    self._report(place, tensor_rules.wrong_collector(name, problem))


def _is_tensor_of(item: Instance, cta: Cta) -> bool:
    return item.object.space == "tensor" and item.cta == cta


def _concerns(op: Op) -> bool:
    return isinstance(op, TensorCore | TensorCommit | TensorMove) or bool(_name(op))


def _is_straight(thread: Thread) -> bool:
    """Whether a thread executes all of its operations on tensor memory, whatever it reads."""
    return not any(isinstance(op, Branch) or (_concerns(op) and op.guard is not None) for op in thread.code)


def _are_pair(cta: Cta, other: Cta) -> bool:
    return (cta.gpu, cta.cluster, cta.rank ^ 1) == (other.gpu, other.cluster, other.rank)


def _kept_matrix(op: TensorCore, collector: str) -> object:
    """The matrix that a collector may keep: A, or B of the weight-stationary products, which one CTA computes."""
    return op.reads[0 if collector == "a" else 1] if len(op.reads) > 1 else None
