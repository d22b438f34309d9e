"""Which registers decide anything: branches, addresses, counts, awaited values.

The value of a read that decides nothing need not be chosen; the read is explored as the one that learns the least.
"""

from __future__ import annotations

from mcheck.events.liveness_of_registers import effects
from mcheck.kernel.unwritten import unwritten
from mcheck.program import ops
from mcheck.program.expr import Const
from mcheck.program.ops import Op
from mcheck.program.program import Program, Thread
from mcheck.program.registers import registers_of

Effects = tuple[set[str], set[str]]
"""The registers that an operation defines, and those that it uses."""
Watched = dict[int, frozenset[str]]
"""By thread, registers whose final values are asked for."""


def needed(program: Program, watched: Watched | None = None) -> list[frozenset[str]]:
    """For each thread, the registers whose values decide something, or end up in what is ``watched`` or in memory."""
    if watched is None:
        found = _of_threads(program, watched, stores=False)
        if not _by_contents(program, found):
            return found
    return _of_threads(program, watched, stores=True)


def contents_decide(program: Program) -> bool:
    """Whether anything may depend on what memory holds, that of mbarriers left aside."""
    return _maps_may_change(program) or _by_contents(program, _of_threads(program, None, stores=False))


def _maps_may_change(program: Program) -> bool:
    """Whether some copy goes by a tensor map that is not known from the declarations alone."""
    kept = unwritten(program) if any(i.object.tensor_map for i in program.memory.instances) else frozenset()
    for op in program.operations:
        if isinstance(op, ops.TensorCopy):
            where = op.tensor_map.value if isinstance(op.tensor_map, Const) else None
            instance = None if where is None else program.memory.find(where)
            if instance is None or not instance.object.tensor_map or instance.base not in kept:
                return True
    return False


def _by_contents(program: Program, found: list[frozenset[str]]) -> bool:
    return _maps_are_moved(program) or _awaits_values(program) or _loads_decide(program, found)


def _of_threads(program: Program, watched: Watched | None, *, stores: bool) -> list[frozenset[str]]:
    """The registers of each thread that decide something, or end up in what is stored."""
    found = []
    by_code: dict[tuple[frozenset[str], tuple[int, ...]], frozenset[str]] = {}
    known: dict[int, Effects] = {}
    for thread in program.threads:
        names = (watched or {}).get(thread.index, frozenset())
        key = (names, tuple(map(id, thread.code)))
        if key not in by_code:
            by_code[key] = _of_thread(thread, stores, names, known)
        found.append(by_code[key])
    return found


def data_decides(program: Program) -> bool:
    """Whether anything can depend on what copies move: a value that is read, or waited for, or the fields of a map."""
    return (
        _maps_are_moved(program)
        or _awaits_values(program)
        or any(_results(op) for op in program.operations if isinstance(op, ops.Load | ops.Atomic))
    )


def _maps_are_moved(program: Program) -> bool:
    """Whether tensor maps are changed or copied at run time: loads and stores may have brought their bytes there."""
    kinds = ops.TensormapReplace | ops.TensormapCopyFence
    return any(isinstance(op, kinds) for code in {id(t.code): t.code for t in program.threads}.values() for op in code)


def _awaits_values(program: Program) -> bool:
    """Whether a value of memory is waited for: what is stored there decides if the wait ends."""
    code = program.operations
    return any(isinstance(op, ops.Await) and isinstance(op.inner, ops.Load | ops.Atomic) for op in code)


def _loads_decide(program: Program, found: list[frozenset[str]]) -> bool:
    return any(
        _results(op) & names
        for thread, names in zip(program.threads, found, strict=True)
        if names
        for op in thread.code
        if isinstance(op, ops.Load | ops.Atomic)
    )


def _results(op: Op) -> set[str]:
    return effects(op)[0]


def _of_thread(thread: Thread, stores: bool, watched: frozenset[str], known: dict[int, Effects]) -> frozenset[str]:
    """The registers of one thread; ``known`` are the effects of operations, most of which threads share."""
    wanted: set[str] = set(watched)
    flows: list[tuple[set[str], set[str]]] = []
    done: set[int] = set()
    for op in thread.code:
        if id(op) in done:
            continue
        done.add(id(op))
        found = known.get(id(op))
        if found is None:
            found = known[id(op)] = effects(op)
        defined, used = found
        if isinstance(op, ops.Alu):
            if op.guard is not None:
                wanted.add(op.guard.reg.name)
                defined = {r.name for r in op.dsts if r is not None}
            flows.append((defined, used))
            continue
        if isinstance(op, ops.Store) and not stores:
            data = {name for src in op.srcs for name in registers_of(src)}
            keep = set(registers_of(op.address))
            used = (used - data) | keep
            if op.guard is not None:
                used.add(op.guard.reg.name)
        wanted |= used
    changed = True
    while changed:
        changed = False
        for defined, used in flows:
            if defined & wanted and not used <= wanted:
                wanted |= used
                changed = True
    return frozenset(wanted)
