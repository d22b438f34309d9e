"""Which programs a GPU of sm_90 runs as many instances at once, and how an instance lies on it.

Every declared thread has a warp, and the 32 lanes of the warp are 32 instances. The CTAs of the program are CTAs of the
launch, its clusters clusters; a *copy* is a set of warps that holds 32 instances, and a CTA has as many copies as fit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hardware.emit import CannotEmit
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.memory import Cta, Instance
from mcheck.ir.ops import Op, performed_operation
from mcheck.ir.program import Program, Thread, describe_kinds

SHARED_LIMIT = 220 * 1024
"""Shared memory of a CTA that the instances may take: the 227 KiB of sm_90 less what the frame needs."""

LINE = 128
"""Bytes after which the banks of shared memory repeat: instances that far apart collide in every access of a warp."""

WARP = 32
"""How many threads count as arrived when a warp does."""

ELSEWHERE = ("sm_100", "sm_101", "sm_103", "sm_110", "sm_120", "sm_121")
NO_ATOMICS = ("sub", "mul", "div")
"""Operations of the table dialect that ``atom`` and ``red`` of PTX lack (9.7.13.5, 9.7.13.6)."""

_ASYNC_WRITERS = (ops.BulkCopy, ops.TensorCopy, ops.AsyncStore)


@dataclass(frozen=True, slots=True)
class Shape:
    """How one instance lies on the chip.

    ``slots`` has (CTA, warp of the copy) per thread, ``threads`` the declared threads per CTA, ``barriers`` the numbers
    of the barriers that the program uses, ``offsets`` where each shared object lies in the ``block`` bytes of an
    instance. ``free``: no thread waits for another, so that the threads of an instance may be anywhere in the grid.
    """

    ctas: tuple[Cta, ...]
    clustered: bool
    cluster: int
    warps: int
    slots: tuple[tuple[int, int], ...]
    threads: tuple[int, ...]
    barriers: tuple[int, ...]
    cluster_barriers: int
    offsets: dict[str, int]
    block: int
    free: bool

    @property
    def shared(self) -> bool:
        """Whether the program has shared memory."""
        return self.block > 0


def shape(program: Program, gpus: int = 1) -> Shape:
    """The shape of a program; raises ``CannotEmit`` with the reason where so many chips cannot run it so."""
    _refuse(program, gpus)
    if gpus > 1 and program.clustered:
        raise CannotEmit("it has clusters on several GPUs")
    ctas = tuple(sorted({t.place.cta for t in program.threads}, key=lambda c: c.number))
    size = 1 + max(c.rank for c in ctas)
    clusters = sorted({c.cluster for c in ctas})
    if program.clustered and [(c.cluster, c.rank) for c in ctas] != [(k, r) for k in clusters for r in range(size)]:
        raise CannotEmit("a cluster has a CTA without threads")
    if [c.number for c in ctas] != list(range(len(ctas))):
        raise CannotEmit("a CTA has no threads")
    seen: Counter[int] = Counter()
    slots = []
    for thread in program.threads:
        cta = thread.place.cta.number
        slots.append((cta, seen[cta]))
        seen[cta] += 1
    offsets, block = _lay(program)
    executed = [[performed_operation(op) for op in t.code] for t in program.threads]
    barriers = tuple(sorted({_number(op) for code in executed for op in code if isinstance(op, ops.Barrier)}))
    return Shape(
        ctas=ctas,
        clustered=program.clustered or any(isinstance(op, ops.ClusterBarrier) for code in executed for op in code),
        cluster=size if program.clustered else 1,
        warps=max(seen.values()),
        slots=tuple(slots),
        threads=tuple(seen[c.number] for c in ctas),
        barriers=barriers,
        cluster_barriers=_cluster_barriers(executed),
        offsets=offsets,
        block=block,
        free=not offsets and not barriers and not _waits(program),
    )


def warmable(program: Program) -> bool:
    """Whether early generic reads of global memory change nothing: no copy writes it, so none needs a proxy fence."""
    return not any(isinstance(performed_operation(op), _ASYNC_WRITERS) for t in program.threads for op in t.code)


def owner_of(program: Program, address: int) -> Instance:
    """The object that holds the byte at a virtual or physical address."""
    for instance in program.memory.instances:
        if instance.object.alias_proxy not in (None, "generic"):
            continue  # another name of the same bytes
        for base in (instance.base, instance.physical):
            if base <= address < base + instance.object.size:
                return instance
    raise CannotEmit("an address outside every object")


def refuse(program: Program, gpus: int = 1) -> None:
    """Raises ``CannotEmit`` with the reason why so many chips of sm_90 cannot show anything of a program."""
    if program.target is not None and program.target.startswith(ELSEWHERE):
        raise CannotEmit(f"it needs {program.target}")
    if any(t.place.cta.gpu >= gpus for t in program.threads):
        raise CannotEmit("it needs several GPUs")
    if program.model is not None and program.model.split(".")[0] in ("sc", "ptx-6", "ptx-7"):
        raise CannotEmit("it speaks about another model")
    if any(i.object.alias_of is not None and i.cta is not None for i in program.memory.instances):
        raise CannotEmit("it has aliases in shared memory")
    kinds = program.expectation.kinds
    if any("deadlock" in line or "undefined" in line for line in kinds):
        raise CannotEmit(f"it expects {describe_kinds(kinds)}: nothing to observe")
    for thread in program.threads:
        for op in map(performed_operation, thread.code):
            _refuse_op(op)


def _refuse(program: Program, gpus: int) -> None:
    """Raises ``CannotEmit`` where the 32 lanes of a warp cannot be 32 instances of a program."""
    refuse(program, gpus)
    if any(n > 1 for n in Counter(t.place.own_warp for t in program.threads).values()):
        raise CannotEmit("it has whole warps")
    codes = [[performed_operation(op) for op in t.code] for t in program.threads]
    if any(isinstance(op, ops.Wgmma | ops.WgmmaFence) for code in codes for op in code):
        raise CannotEmit("it has wgmma")
    if any(isinstance(op, ops.Barrier) and op.instance is not None for code in codes for op in code):
        raise CannotEmit("it has a barrier of the table dialect")
    waits = any(isinstance(op, ops.Barrier | ops.ClusterBarrier) for code in codes for op in code)
    if waits and any(isinstance(op, ops.Exit | ops.Branch) or op.guard for code in codes for op in code):
        raise CannotEmit("its barriers depend on branches")
    _refuse_barriers(program)


def _refuse_op(op: Op) -> None:
    if isinstance(op, ops.Load | ops.Store | ops.Atomic) and op.proxy == "constant":
        raise CannotEmit("what .const holds may not be written while a kernel runs")  # 5.1.3
    if isinstance(op, ops.ProxyFence) and op.kind not in ("async", "alias", "tensormap"):
        raise CannotEmit(f"PTX has no fence.proxy.{op.kind}")  # 9.7.13.4
    if isinstance(op, ops.Atomic) and op.op in NO_ATOMICS:
        raise CannotEmit(f"PTX has no atomic {op.op}")
    if isinstance(op, ops.BulkCopy) and op.byte_mask is not None:
        raise CannotEmit("it has .cp_mask, which needs sm_100")


def _refuse_barriers(program: Program) -> None:
    """A ``bar.sync`` without a count waits for all threads: on the chip as many times as each of them executes it."""
    for cta in {t.place.cta.number for t in program.threads}:
        counts: dict[int, set[int]] = {}
        for thread in program.threads:
            if thread.place.cta.number != cta:
                continue
            mine = Counter(_number(op) for op in thread.code if isinstance(op, ops.Barrier) and op.count is None)
            for number in {_number(op) for t in program.threads for op in t.code if isinstance(op, ops.Barrier)}:
                counts.setdefault(number, set()).add(mine[number])
        counted = {_number(op) for t in program.threads for op in t.code if isinstance(op, ops.Barrier) and op.count}
        if any(len(found) > 1 for number, found in counts.items() if number not in counted):
            raise CannotEmit("a thread exits while others wait at a barrier")
        if any(len(found) > 1 or found != {0} for number, found in counts.items() if number in counted):
            raise CannotEmit("a barrier is used with and without a count")
        _refuse_leftovers(program, cta)


def may_leave_waiting(program: Program) -> bool:
    """Whether a thread executes a barrier without a count less often than another one of its CTA: where it has not
    ended, the other one waits for it.
    """
    counts: dict[int, set[frozenset[tuple[int, int]]]] = {}
    for thread in program.threads:
        mine = Counter(_number(op) for op in thread.code if isinstance(op, ops.Barrier) and op.count is None)
        counts.setdefault(thread.place.cta.number, set()).add(frozenset(mine.items()))
    return any(len(found) > 1 for found in counts.values())


def _refuse_leftovers(program: Program, cta: int) -> None:
    """An arrival that completes no round would count in the next round of the runner: each thread arrives as a warp."""
    arrivals: Counter[tuple[int, int]] = Counter()
    for op in (op for t in program.threads if t.place.cta.number == cta for op in t.code):
        if isinstance(op, ops.Barrier) and isinstance(op.count, Const):
            arrivals[_number(op), op.count.value] += 1
    if any(number * WARP % count for (_, count), number in arrivals.items() if count):
        raise CannotEmit("an arrival is left over at a barrier")


def _number(op: ops.Barrier) -> int:
    if isinstance(op.barrier, Const):
        return op.barrier.value
    raise CannotEmit("the number of a barrier is in a register")


def _cluster_barriers(executed: list[list[Op]]) -> int:
    arrivals = {sum(isinstance(op, ops.ClusterBarrier) and op.kind == "arrive" for op in code) for code in executed}
    waits = {sum(isinstance(op, ops.ClusterBarrier) and op.kind == "wait" for op in code) for code in executed}
    if len(arrivals) > 1 or arrivals != waits:
        raise CannotEmit("a thread exits while others wait at the barrier of the cluster")
    return arrivals.pop()


def may_skip_a_meeting(thread: Thread) -> bool:
    """Whether a branch, an exit or a guard decides how often the thread is at the barrier of its cluster."""
    places = [at for at, op in enumerate(thread.code) if isinstance(performed_operation(op), ops.ClusterBarrier)]
    for at, op in enumerate(thread.code):
        if isinstance(op, ops.Exit) and any(at < place for place in places):
            return True
        if isinstance(op, ops.Branch):
            low, high = sorted((at, thread.labels[op.target]))
            if any(low <= place < high for place in places):
                return True
    return any(thread.code[place].guard for place in places)


def _waits(program: Program) -> bool:
    blocking = (ops.Await, ops.Barrier, ops.ClusterBarrier, ops.MbarrierWait, ops.Branch)
    return any(isinstance(op, blocking) for t in program.threads for op in t.code)


def _lay(program: Program) -> tuple[dict[str, int], int]:
    """Where the shared objects of an instance lie, each on lines of its own so that the lanes of a warp collide."""
    offsets: dict[str, int] = {}
    at = 0
    for instance in program.memory.instances:
        item = instance.object
        if instance.cta is None or item.name in offsets:
            continue
        if item.align > LINE:
            raise CannotEmit(f"{item.name} is aligned to {item.align} bytes")
        offsets[item.name] = at
        at += (item.size + LINE - 1) // LINE * LINE
    if at * 32 > SHARED_LIMIT:
        raise CannotEmit(f"32 instances take {at * 32} bytes of shared memory")
    return offsets, at
