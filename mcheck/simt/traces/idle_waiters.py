"""Idle waiters: threads that keep waiting with nothing else to do, such as the idle warps beside one that issues
copies.

Compilers let all warps of a producer warpgroup wait for each free slot, and one of them fill it. The others' waits do
not affect anything: in theory such a warp may sleep until the barrier is two phases on, and then wait forever for the
parity that it has missed. Kernels rely on that not happening. So these waits are dropped from the program, which is
reported as an assumption, and the engine need not explore how far each warp may fall behind.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby

from mcheck.base.records import replace
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread

Code = tuple[Op, ...]
Reached = dict[int, dict[int, list[int]]]
"""For each code, by identity: the barriers in it, by identity, and where they stand."""

WARP_OPERATIONS = (ops.WarpSync, ops.Collective)
"""Operations that synchronise the lanes of a warp, invisible to others."""
FENCES = (ops.ProxyFence, ops.Fence)
"""Operations that order what a thread does and has observed, without other effects."""


def drop_idle_waiters(program: Program) -> tuple[Program, tuple[int, ...]]:
    """The program without the waits of idle waiters, and the lines of these waits.

    After its last synchronisation with others an idle waiter only waits on mbarriers, and a thread that was there and
    does more waits for all of that too; the lanes of a warp may synchronise again on the way. So nothing ends earlier
    without its waits, and an error in one of them is also an error in that of the other thread. Its fences, between
    which it does nothing, stay where the lanes synchronise again: one of them may pass on what it has observed. No
    thread may invalidate these mbarriers.

    The same holds for an idle waiter that synchronises with the other thread again at a barrier after the waits, which
    ends no earlier than that thread's waits and passes on what they have shown: idle until the end and idle until a
    barrier are alike. A single wait on each mbarrier is kept.
    """
    ended = {op.address for t in program.threads for op in t.code if isinstance(op, ops.MbarrierInval)}
    lighter: dict[int, Code] = {}
    for _, several in groupby(program.threads, key=lambda t: t.place.cta):
        codes: dict[tuple[int, ...], Code] = {}
        threads = [replace(t, code=codes.setdefault(tuple(map(id, t.code)), t.code)) for t in several]
        different = list(codes.values())
        reached = _barriers_of(threads, different)
        for _, lanes in groupby(threads, key=lambda t: t.place.warp):
            warp = list(lanes)
            found = _without_idle_waits(warp, different, ended)
            lighter |= found | _idle_until_barrier(warp, found, different, ended, reached)
    if not lighter:
        return program, ()
    lines: set[int] = set()
    out = list(program.threads)
    for k, thread in enumerate(out):
        if thread.index in lighter:
            out[k] = replace(thread, code=lighter[thread.index])
            kept = set(map(id, out[k].code))
            lines |= {
                op.span.line for op in thread.code if op.span is not None and id(op) not in kept and _wait_key(op)
            }
    return replace(program, threads=tuple(out)), tuple(sorted(lines))


def _without_idle_waits(warp: Sequence[Thread], others: Sequence[Code], ended: set[Expr]) -> dict[int, Code]:
    """The idle waiters of a warp, by index, each with its code without the waits."""
    starts = {t.index: start for t in warp if (start := _idle_from(t.code, ended)) is not None}
    if len(starts) == len(warp):  # all of them only wait
        whole = {t.index: t.code[: starts[t.index]] for t in warp}
        if all(any(_outlasts(other, t.code, starts[t.index]) for other in others) for t in warp):
            return whole
    found: dict[int, Code] = {}
    different = list({tuple(map(id, t.code)): t.code for t in warp}.values())
    for thread in warp:
        if (start := starts.get(thread.index)) is not None:
            made = (_redundant_waits(other, thread.code, start) for other in different if other != thread.code)
            code = next((c for c in made if c is not None), None)
            if code is not None:
                found[thread.index] = code
    return found


def _idle_until_barrier(
    warp: Sequence[Thread], at_the_end: dict[int, Code], others: Sequence[Code], ended: set[Expr], reached: Reached
) -> dict[int, Code]:
    """Those that are idle until they reach a barrier, by index, each with its code without the waits; and, for some,
    without those ``at_the_end``.
    """
    found = {t.index: at_the_end.get(t.index, t.code) for t in warp}
    codes = {id(t.code): t.code for t in warp}
    met: dict[tuple[int, int], int] = {}
    for key, code in codes.items():
        for barrier, places in reached[key].items():
            met |= {(k, count): barrier for count, k in enumerate(places)
                    if k and (_wait_key(code[k - 1]) or isinstance(code[k - 1], WARP_OPERATIONS + FENCES))}  # fmt: skip
    for (_, count), barrier in sorted(met.items(), key=lambda item: item[0], reverse=True):
        ends = {key: places[barrier][count] for key, places in reached.items() if count < len(places.get(barrier, ()))}
        before = {key: code[: ends[key]] for key, code in codes.items() if key in ends}
        if len(before) < len(codes) or not any(_may_fall_behind(part, ended) for part in before.values()):
            continue
        parts = [replace(t, code=before[id(t.code)]) for t in warp]
        there = [code[: ends[id(code)]] for code in others if id(code) in ends]
        for index, code in _without_idle_waits(parts, there, ended).items():
            part = next(t.code for t in parts if t.index == index)
            found[index] = code + found[index][len(part) :]
    return {t.index: found[t.index] for t in warp if len(found[t.index]) < len(t.code)}


def _may_fall_behind(code: Code, ended: set[Expr]) -> bool:
    """Whether a thread that only waits does so for several phases of an mbarrier."""
    start = _idle_from(code, ended)
    places = [key[0] for op in code[start:] if (key := _wait_key(op)) is not None] if start is not None else []
    return len(set(places)) < len(places)


def _idle_from(code: Code, ended: set[Expr]) -> int | None:
    """Where a thread begins to do nothing but wait, after a point where it synchronises with others."""
    start = len(code)
    while start and (_wait_key(code[start - 1]) is not None or isinstance(code[start - 1], WARP_OPERATIONS + FENCES)):
        start -= 1
    waits = [key for op in code[start:] if (key := _wait_key(op)) is not None]
    if not waits or not start or any(Const(place) in ended for place, _ in waits):
        return None
    return start if _synchronises(code[start - 1]) else None


def _outlasts(other: Code, code: Code, start: int) -> bool:
    """Whether a thread of another warp, from the same point on, waits for as much and does something else."""
    rest = _code_after(other, code, start)
    return _waits_for(rest, code[start:]) and any(map(_is_observable, rest))


def _redundant_waits(other: Code, code: Code, start: int) -> Code | None:
    """The code without the waits for which another lane of the warp waits too, before the two synchronise again, and
    then does something else; ``None`` if there are none.
    """
    rest = _code_after(other, code, start)
    mine, theirs = list(_split_at_convergence(code[start:])), list(_split_at_convergence(rest))
    if [meeting for _, meeting in mine] != [meeting for _, meeting in theirs]:
        return None
    out: list[Op] = list(code[:start])
    for (waits, meeting), (there, _) in zip(mine, theirs, strict=True):
        first = next((k for k, op in enumerate(there) if _wait_key(op) is not None), len(there))
        covered = _waits_for(there, waits) and any(map(_is_observable, there[first:]))
        out += (op for op in waits if not covered or _wait_key(op) is None)
        out += () if meeting is None else (meeting,)
    return tuple(out) if len(out) < len(code) else None


def _split_at_convergence(code: Code) -> Iterator[tuple[Code, Op | None]]:
    """The code before each synchronisation of the warp, with that operation, and after the last one."""
    begun = 0
    for k, op in enumerate(code):
        if isinstance(op, WARP_OPERATIONS):
            yield code[begun:k], op
            begun = k + 1
    yield code[begun:], None


def _code_after(other: Code, code: Code, start: int) -> Code:
    """The code of another thread after it has synchronised with this one just before ``start``; empty if it
    does not.
    """
    met = code[start - 1]
    places = [k for k, op in enumerate(other) if op is met]
    count = sum(op is met for op in code[:start])
    return other[places[count - 1] + 1 :] if count <= len(places) else ()


def _waits_for(code: Code, waits: Code) -> bool:
    """Whether code has these waits, in their order."""
    left = iter(code)
    return all(any(_wait_key(op) == key for op in left) for wait in waits if (key := _wait_key(wait)) is not None)


def _is_observable(op: Op) -> bool:
    """Whether other threads can observe an operation."""
    return _wait_key(op) is None and not isinstance(op, WARP_OPERATIONS + FENCES)


def _synchronises(op: Op) -> bool:
    match op:
        case ops.Barrier(kind=kind):
            return kind != "arrive"
        case ops.ClusterBarrier(kind=kind):
            return kind == "wait"
    return False


def _barriers_of(threads: Sequence[Thread], codes: Sequence[Code]) -> Reached:
    """Where each code reaches the barriers at which all threads of a CTA that reach one of their number wait for each
    other: no generation of them completes without one of these.
    """
    reached: Reached = {}
    barriers: dict[int, ops.Barrier] = {}
    for code in codes:
        places: defaultdict[int, list[int]] = defaultdict(list)
        reached[id(code)] = places
        for k, op in enumerate(code):
            if isinstance(op, ops.Barrier):
                barriers[id(op)] = op
                places[id(op)].append(k)
    sharers = Counter(id(t.code) for t in threads)
    users: Counter[Expr | None] = Counter()
    for key, found in reached.items():
        users.update(dict.fromkeys({barriers[barrier].barrier for barrier in found}, sharers[key]))
    full = {
        k
        for k, op in barriers.items()
        if op.kind != "arrive" and isinstance(op.barrier, Const)
        and (op.count is None or (isinstance(op.count, Const) and users[op.barrier] <= op.count.value))
    }  # fmt: skip
    return {key: {k: at for k, at in places.items() if k in full} for key, places in reached.items()}


def _wait_key(op: Op) -> tuple[int, int] | None:
    """The mbarrier and the parity of a wait without other effects."""
    match op:
        case ops.Await(inner=ops.MbarrierWait(address=Const(address), dst=None, parity=Const(parity))):
            return address, parity
    return None
