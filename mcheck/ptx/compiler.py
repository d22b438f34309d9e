"""From statements to the steps of ``mcheck.ptx.cluster``: operands, local computation, control flow, calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from mcheck.errors import InputError, Unsupported
from mcheck.program.memory import GLOBAL_BASE, SHARED_BASE, SHARED_WINDOW
from mcheck.ptx import module as ptx
from mcheck.ptx import quality
from mcheck.ptx.bits import Word, arithmetic, cut, width
from mcheck.ptx.cluster import Cluster, Return, Step
from mcheck.ptx.code import Code, Unit, call_of, call_parts, computes, passed, resolved
from mcheck.ptx.decided import Decided
from mcheck.ptx.fatal import FAILS, in_doubt, trap_at
from mcheck.ptx.flight import flying_rows
from mcheck.ptx.flow import writes
from mcheck.ptx.forms import KNOWN, fault
from mcheck.ptx.lanes import Lanes, Mask, Quality
from mcheck.ptx.launch_answers import asked
from mcheck.ptx.lower import template
from mcheck.ptx.naming import namer
from mcheck.ptx.noting import noted
from mcheck.ptx.places import FUNCTION_BASE, LOCAL_BASE, PARAM_BASE, Places
from mcheck.ptx.reach import reachable
from mcheck.syntax.mistakes import MOST, place_of

Fetch = Callable[[], tuple[Word, Quality]]
Maker = Callable[["Compiler", Unit, ptx.Statement, int], Step]
MAKERS: dict[str, Maker] = {}
"""By the first part of the opcode, or the first two, who makes the step."""

SURE = np.zeros(1, np.uint8)
MOVES = frozenset(("mov", "cvta", "prmt"))
"""Instructions that move numbers and names alike."""


def makes(*names: str) -> Callable[[Maker], Maker]:
    """Registers the maker of instructions whose opcode starts so."""

    def register(maker: Maker) -> Maker:
        for name in names:
            MAKERS[name] = maker
        return maker

    return register


@dataclass(slots=True)
class Compiler:
    """Makes the steps of all functions that an entry reaches."""

    module: ptx.Module
    code: Code
    lanes: Lanes
    places: Places
    heads: set[int] = field(default_factory=set)
    mistakes: dict[int, InputError] = field(default_factory=dict)
    """What is wrong with statements that are no instructions, by their places."""
    flying: frozenset[int] = frozenset()
    """The rows of the registers that asynchronous instructions write."""
    decided: Decided = field(init=False)

    def __post_init__(self) -> None:
        self.decided = Decided(self.lanes)
        self.decided.prepare(self.code)

    def steps(self) -> list[Step]:
        """The code; each function ends with a return."""
        out: list[Step] = []
        self.flying = flying_rows(self.code.units)
        for unit in self.code.units:
            self.heads |= {unit.start + at for at in unit.function.labels.values()} | {unit.start}
            for at, statement in enumerate(unit.function.body):
                out.append(self._deciding(unit, statement, unit.start + at))
            out.append(leave)
        return out

    def _deciding(self, unit: Unit, statement: ptx.Statement, at: int) -> Step:
        """The step of a statement, after which nothing is thought of what its registers held before."""
        made, decided = self._step(unit, statement, at), self.decided
        rows = decided.touched(unit.frame, statement)
        if not rows:
            return made
        target = rows[0] if at in decided.literals else None
        known = self.lanes.quality

        def run(c: Cluster, mask: Mask) -> Mask | None:
            if not decided.idle:
                decided.forget(rows, mask, made=True)
            rest = made(c, mask)
            if not decided.idle:  # what the guard was chosen to be says something of the registers before
                decided.forget(rows, mask, made=False)
            if target is not None:
                unknown = mask & ((known[target] & np.uint8(quality.UNKNOWN)) != 0)
                if unknown.any():
                    decided.note(at, unknown)
            return rest

        return run

    def _step(self, unit: Unit, statement: ptx.Statement, at: int) -> Step:
        wrong = fault(statement)
        if wrong is not None:
            return self._mistaken(unit, statement, at, wrong.error(statement))
        name = statement.opcode[0]
        if computes(statement):
            made = self._computation(unit, statement)
            return made if statement.guard is not None else noted(made, unit, statement, at, self.flying)
        maker = MAKERS.get(".".join(statement.opcode[:2])) or MAKERS.get(name)
        try:
            if maker is None:
                template(unit.function, statement)  # raises if it is no instruction at all
                return unfollowed(statement, f"'{statement.text}' is not followed")
            made = maker(self, unit, statement, at)
        except InputError as error:
            return self._mistaken(unit, statement, at, error)
        except Unsupported as error:
            return unfollowed(statement, error.message)
        if name in ("bra", "brx", "ret", "exit", "call", "trap"):
            return made  # look at their guards themselves
        return self.guarded(unit, statement, noted(made, unit, statement, at, self.flying))

    def _mistaken(self, unit: Unit, statement: ptx.Statement, at: int, error: InputError) -> Step:
        """What is no instruction: a mistake where it is executed, told with the others that control may come to. In a
        module of a later PTX than the tables are of it may be one that came since, so it is not followed.
        """
        if self.module.ptx > KNOWN:
            known, written = ".".join(map(str, KNOWN)), self.module.version
            return unfollowed(statement, f"{error.message} (up to PTX {known}; the module is of {written})")
        if error.span is None:
            error.span = statement.span
        self.mistakes[at] = error

        def run(_c: Cluster, _mask: Mask) -> None:
            live = reachable(self.module, self.code, self.mistakes) | {at}
            first, *others = sorted((self.mistakes[k] for k in live & set(self.mistakes)), key=place_of)[:MOST]
            first.others = tuple(others)
            raise first

        return self.guarded(unit, statement, run)

    def guarded(self, unit: Unit, statement: ptx.Statement, made: Step) -> Step:
        """A step that only the lanes make for which the guard holds."""
        guard, span = statement.guard, statement.span
        if guard is None:

            def plain(c: Cluster, mask: Mask) -> Mask | None:
                c.span = span
                return made(c, mask)

            return plain
        row = unit.frame + guard.register.index

        def run(c: Cluster, mask: Mask) -> Mask | None:
            c.span = span
            mine = c.holds(guard, row, mask, statement)
            if not mine.any():
                return mask
            others = mask & ~mine
            at = c.at
            rest = made(c, mine)
            if rest is None:
                if others.any():
                    c.place[others] = at + 1
                return None
            return rest | others

        return run

    # --- operands ------------------------------------------------------------------------------------------------

    def fetch(self, unit: Unit, operand: ptx.Operand) -> Fetch:
        """What an operand holds in all lanes."""
        values, known = self.lanes.values, self.lanes.quality
        match operand:
            case ptx.Register(_, _, index):
                row = unit.frame + index
                return lambda: (values[row], known[row])
            case ptx.Negated(register):
                row = unit.frame + register.index
                return lambda: (np.uint64(1) - values[row], known[row])
            case ptx.Immediate(value):
                constant = np.array([value & (1 << 64) - 1], np.uint64)
                return lambda: (constant, SURE)
            case ptx.Special(name):
                found = self.lanes.special.get(name)
                if found is None:
                    unknown = np.zeros(1, np.uint64), np.array([quality.NOTHING], np.uint8)
                    return lambda: unknown
                return lambda: (found, SURE)
            case ptx.Symbol(name, offset):
                address = self.symbol(unit, name) + np.uint64(offset & (1 << 64) - 1)
                return lambda: (address, SURE)
            case ptx.Address(base, offset, _):
                if base is None:
                    return self.fetch(unit, ptx.Immediate(offset))
                inner, more = self.fetch(unit, base), np.uint64(offset & (1 << 64) - 1)
                if not offset:
                    return inner
                narrow = isinstance(base, ptx.Register) and width(base.type) == 32
                if narrow:
                    return lambda: (cut(inner()[0] + more, 32), inner()[1])
                return lambda: (inner()[0] + more, inner()[1])
            case ptx.Part(register, selector) if len(selector) == 2:  # more are what SIMD video instructions mix
                row, bits = unit.frame + register.index, 8 if selector[0] == "b" else 16
                by = np.uint64(int(selector[1]) * bits)
                return lambda: (cut(values[row] >> by, bits), known[row])
        raise Unsupported("an operand of this kind is not followed")

    def symbol(self, unit: Unit, name: str) -> Word:
        """The address of a name, in each lane."""
        for key in ((unit.function.name, name), ("", name)):
            at = self.places.symbols.get(key)
            if at is not None:
                if key in self.places.shared:
                    return (self.lanes.cta * SHARED_WINDOW + at).astype(np.uint64)
                return np.array([at], np.uint64)
        raise Unsupported(f"'{name}' has no address here")

    def rows(self, unit: Unit, registers: Iterable[ptx.Register]) -> list[int]:
        """The rows of registers."""
        return [unit.frame + r.index for r in registers]

    def wants(self, unit: Unit, statement: ptx.Statement) -> bool:
        """Whether anything depends on what a statement computes."""
        return any(row in self.code.wanted for row in self.rows(unit, writes(statement)))

    # --- computation ---------------------------------------------------------------------------------------------

    def _computation(self, unit: Unit, statement: ptx.Statement) -> Step:
        if not self.wants(unit, statement):
            return skip
        try:
            made = self._followed(unit, statement)
        except Unsupported:
            made = None
        if made is None:
            made = self.opaque(unit, statement)
        return made if statement.guard is None else self._perhaps(unit, statement, made)

    def _perhaps(self, unit: Unit, statement: ptx.Statement, made: Step) -> Step:
        """A computation with a guard: where data decides it, what it writes is not known afterwards, and nothing else
        depends on the guard.
        """
        assert statement.guard is not None
        known = self.lanes.quality
        guard, rows = unit.frame + statement.guard.register.index, self.rows(unit, writes(statement))
        plain = self.guarded(unit, statement, made)

        def run(c: Cluster, mask: Mask) -> Mask:
            doubt = mask & (known[guard] & np.uint8(quality.UNKNOWN) != 0)
            if not doubt.any():
                plain(c, mask)
                return mask
            if not np.array_equal(doubt, mask):
                plain(c, mask & ~doubt)
            for row in rows:
                known[row][doubt] = quality.NOTHING
            return mask

        return run

    def opaque(self, unit: Unit, statement: ptx.Statement) -> Step:
        """What is written is not known afterwards."""
        rows = self.rows(unit, writes(statement))
        known = self.lanes.quality
        if self.code.named and (computes(statement) or statement.opcode[0] == "wgmma"):
            name = namer(self.lanes, partial(self.rows, unit), statement)

            def named(_: Cluster, mask: Mask) -> Mask:
                name(mask)
                return mask

            return named

        def run(_: Cluster, mask: Mask) -> Mask:
            for row in rows:
                known[row][mask] = quality.NOTHING
            return mask

        return run

    def _followed(self, unit: Unit, statement: ptx.Statement) -> Step | None:
        name, operands = statement.opcode[0], statement.operands
        if name == "mov":
            return self._move(unit, statement)
        if name == "activemask":
            return self._active(unit, statement)
        if name in ("cvta", "mapa", "getctarank", "isspacep"):
            function = self._address_function(unit, statement)
        elif name == "clusterlaunchcontrol":
            function = asked(statement.opcode)
        else:
            function = arithmetic(statement.opcode)
        if function is None:
            return None
        targets = self.targets(unit, operands[0])
        sources = [self.fetch(unit, o) for o in operands[1:]]
        short = {"and": 0, "or": 1}.get(name)
        mixes = name == "selp"
        kind = statement.opcode[-1]
        compared = width(kind) if name == "setp" and kind[0] in "bus" and len(sources) == 2 else 0
        named = self.opaque(unit, statement) if self.code.named and name not in MOVES else None
        values, known = self.lanes.values, self.lanes.quality

        def run(c: Cluster, mask: Mask) -> Mask:
            given = [s() for s in sources]
            results = function(*[pair[0] for pair in given])
            sure = given[0][1]
            for pair in given[1:]:
                sure = sure | pair[1]
            if sure.any():
                if compared and (sure & quality.COUNTED).any():
                    c.counters.compare(statement.opcode[1], compared, given, mask)
                sure = refined(name, given, sure, short, mixes)
            for row, result in zip(targets, results, strict=False):
                if row is not None:
                    np.copyto(values[row], result, where=mask)
                    np.copyto(known[row], sure, where=mask)
            if named is not None:
                unknown = mask & ((given[2][1] if mixes else sure) & np.uint8(quality.UNKNOWN) != 0)
                if unknown.any():
                    named(c, unknown)
            return mask

        return run

    def targets(self, unit: Unit, operand: ptx.Operand) -> list[int | None]:
        """The rows that are written; ``None`` for ``_``."""
        match operand:
            case ptx.Register(_, _, index):
                return [unit.frame + index]
            case ptx.Pair(first, second):
                return self.targets(unit, first) + self.targets(unit, second)
            case ptx.Vector(items):
                return [row for item in items for row in self.targets(unit, item)]
            case ptx.Sink():
                return [None]
        raise Unsupported("a destination of this kind is not followed")

    def _move(self, unit: Unit, statement: ptx.Statement) -> Step | None:
        target, source = statement.operands
        bits = width(statement.opcode[-1])
        values, known = self.lanes.values, self.lanes.quality
        if bits == 128:
            return self._wide(unit, target, source)
        if bits > 64 or bits == 0:
            return None
        if isinstance(source, ptx.Vector) and not isinstance(target, ptx.Vector):
            parts = [self.fetch(unit, o) for o in source.items]
            size = bits // len(parts)
            (row,) = self.targets(unit, target)
            assert row is not None

            def pack(_: Cluster, mask: Mask) -> Mask:
                whole, sure = np.zeros(1, np.uint64), SURE
                for k, part in enumerate(parts):
                    value, q = part()
                    whole = whole | cut(value, size) << np.uint64(k * size)
                    sure = sure | q
                np.copyto(values[row], whole, where=mask)
                np.copyto(known[row], sure, where=mask)
                return mask

            return pack
        if isinstance(source, ptx.Vector):
            return None
        rows, fetch = self.targets(unit, target), self.fetch(unit, source)
        size = bits // len(rows)

        def move(_: Cluster, mask: Mask) -> Mask:
            value, sure = fetch()
            for k, row in enumerate(rows):
                if row is not None:
                    part = cut(value >> np.uint64(k * size), size) if len(rows) > 1 else cut(value, bits)
                    np.copyto(values[row], part, where=mask)
                    np.copyto(known[row], sure, where=mask)
            return mask

        return move

    def _wide(self, unit: Unit, target: ptx.Operand, source: ptx.Operand) -> Step | None:
        """``mov.b128``: of 128 bits the lower half is followed."""
        first = source.items[0] if isinstance(source, ptx.Vector) else source
        rest = source.items[1:] if isinstance(source, ptx.Vector) else ()
        fetches = [self.fetch(unit, o) for o in (first, *rest)]
        low, *high = self.targets(unit, target)
        values, known = self.lanes.values, self.lanes.quality

        def move(_: Cluster, mask: Mask) -> Mask:
            found = [fetch() for fetch in fetches]
            sure = found[0][1]
            for half in found[1:]:
                sure = sure | half[1]
            if low is not None:
                np.copyto(values[low], found[0][0], where=mask)
                np.copyto(known[low], sure, where=mask)
            for row in high:
                if row is not None:
                    known[row][mask] = quality.UNKNOWN
            return mask

        return move

    def _active(self, unit: Unit, statement: ptx.Statement) -> Step:
        (row,) = self.targets(unit, statement.operands[0])
        assert row is not None
        values, known = self.lanes.values, self.lanes.quality
        bit = np.uint64(1) << (np.arange(self.lanes.count) % 32).astype(np.uint64)

        def run(c: Cluster, mask: Mask) -> Mask:
            rows = np.where(mask, bit, np.uint64(0)).reshape(-1, 32)
            together = np.repeat(np.bitwise_or.reduce(rows, axis=1), 32)
            np.copyto(values[row], together, where=mask)
            known[row][mask] = quality.TOGETHER
            c.trace.assumptions["the lanes that activemask names are those that came together here"] = None
            return mask

        return run

    def _address_function(self, unit: Unit, statement: ptx.Statement) -> Callable[..., tuple[Word, ...]] | None:
        del unit
        opcode = statement.opcode
        base, window = np.uint64(SHARED_BASE), np.uint64(SHARED_WINDOW)
        shared = any(part.startswith("shared") for part in opcode)
        if opcode[0] == "cvta":
            if any(part.startswith("param") for part in opcode):
                return lambda a: (np.where(a < PARAM_BASE, a + np.uint64(PARAM_BASE), a),)
            if not shared:
                return lambda a: (a,)
            if "to" in opcode:
                return lambda a: (cut(a - base, 32) if opcode[-1] == "u32" else np.where(a >= base, a - base, a),)
            return lambda a: (np.where(a < base, a + base, a),)
        if opcode[0] == "mapa":
            return lambda a, rank: ((a & (window - np.uint64(1))) | (a & base) | cut(rank, 32) * window,)
        if opcode[0] == "getctarank":
            return lambda a: ((a & (base - np.uint64(1))) // window,)
        space = opcode[1]
        low, high = {
            "shared": (SHARED_BASE, LOCAL_BASE), "local": (LOCAL_BASE, FUNCTION_BASE),
        }.get(space.partition("::")[0], (GLOBAL_BASE, SHARED_BASE))  # fmt: skip
        return lambda a: (((a >= np.uint64(low)) & (a < np.uint64(high))).astype(np.uint64),)


def refined(name: str, given: list[tuple[Word, Quality]], sure: Quality, short: int | None, mixes: bool) -> Quality:
    """The quality of a result that may not depend on all sources: a zero decides an ``and``, a predicate a ``selp``."""
    if mixes:
        (a, qa), (b, qb), (p, qp) = given
        mine = np.where(p != 0, qa, qb) | qp
        return np.where((qa | qb) == 0, np.where(a == b, np.uint8(0), mine), mine)
    if short is None or len(given) != 2:
        return sure
    (a, qa), (b, qb) = given
    if short == 0:
        decided = ((a == 0) & (qa == 0)) | ((b == 0) & (qb == 0))
    else:
        full = np.uint64(1)
        decided = ((a == full) & (qa == 0)) | ((b == full) & (qb == 0)) if name == "or" and a.max() <= 1 else None
    return sure if decided is None else np.where(decided, np.uint8(0), sure)


def skip(_: Cluster, mask: Mask) -> Mask:
    """Nothing that matters."""
    return mask


def unfollowed(statement: ptx.Statement, reason: str) -> Step:
    """An instruction that nobody can follow: what its lanes do from here on is not known."""

    def run(c: Cluster, mask: Mask) -> None:
        c.span = statement.span
        c.give_up(mask, reason)

    return run


# --- control -----------------------------------------------------------------------------------------------------


def leave(c: Cluster, mask: Mask) -> None:
    """Back to the caller; out of the kernel where there is none."""
    gone = np.zeros_like(mask)
    back: dict[Return, Mask] = {}
    for lane in np.flatnonzero(mask).tolist():
        stack = c.returns[lane]
        if not stack:
            gone[lane] = True
            continue
        back.setdefault(stack.pop(), np.zeros_like(mask))[lane] = True
    for (place, carry), some in back.items():
        carry(c, some)
        c.place[some] = place
    if gone.any():
        c.left(gone)


@makes("bra")
def branch(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``bra``; one over arithmetic that nothing depends on goes both ways to the same effect, whatever decides it."""
    label = statement.operands[0]
    if not isinstance(label, ptx.Label):
        raise Unsupported("a branch to what is no label")
    target = unit.start + unit.function.labels[label.name]
    over = passed(unit, at - unit.start)
    if over and not any(k.wants(unit, s) for s in over):
        return skip
    guard, span = statement.guard, statement.span
    k.heads.add(target)
    k.heads.add(at + 1)
    if guard is None:

        def jump(c: Cluster, mask: Mask) -> None:
            c.span = span
            c.go(mask, target)

        return jump
    row = unit.frame + guard.register.index
    there, here = trap_at(unit.function, target - unit.start), trap_at(unit.function, at + 1 - unit.start)
    trapped = None if there is not None and here is not None else there or here

    def run(c: Cluster, mask: Mask) -> Mask | None:
        c.span = span
        if trapped is None:
            taken = c.holds(guard, row, mask, statement)
        else:
            spared = in_doubt(c, row, mask, trapped, holds=(there is None) is not guard.negated)
            taken = c.holds(guard, row, mask & ~spared, statement)
            taken = taken | spared if there is None else taken
        if not taken.any():
            return mask
        stay = mask & ~taken
        c.place[stay] = at + 1
        c.go(taken, target)
        return None

    return run


@makes("brx")
def indexed(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``brx.idx``."""
    k.heads.add(at + 1)
    index, targets = statement.operands
    if not isinstance(targets, ptx.Label):
        raise Unsupported("a branch without a list of labels")
    labels = [unit.start + unit.function.labels[name] for name in unit.function.branch_targets[targets.name]]
    fetch = k.fetch(unit, index)
    k.heads.update(labels)

    def run(c: Cluster, mask: Mask) -> None:
        value, known = fetch()
        if (np.broadcast_to(known, mask.shape)[mask] & quality.UNKNOWN).any():
            c.give_up(mask, f"'{statement.text}' goes where data says")
            return
        value = np.broadcast_to(value, mask.shape)
        for number in np.unique(value[mask]).tolist():
            c.go(mask & (value == number), labels[min(int(number), len(labels) - 1)])

    return k.guarded(unit, statement, run)


@makes("ret")
def ret(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``ret``."""
    k.heads.add(at + 1)
    return k.guarded(unit, statement, leave)


@makes("exit")
def end(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``exit``."""
    k.heads.add(at + 1)
    return k.guarded(unit, statement, lambda c, mask: c.left(mask))


@makes("trap")
def trap(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``trap``: what an assertion that fails comes to."""
    k.heads.add(at + 1)
    ends = k.guarded(unit, statement, unfollowed(statement, "a trap is reached"))
    if statement.guard is None:
        return ends
    guard, row = statement.guard, unit.frame + statement.guard.register.index

    def run(c: Cluster, mask: Mask) -> Mask | None:
        spared = in_doubt(c, row, mask, statement, holds=guard.negated)
        rest = mask & ~spared
        went = ends(c, rest) if rest.any() else rest
        if went is not None:
            return went | spared
        c.place[spared] = c.at + 1
        return None

    return run


@makes("call")
def call(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """``call``: the arguments are copied into the formal parameters, and back when the function returns."""
    result, target, given = call_parts(statement)
    k.heads.add(at + 1)
    if isinstance(target, ptx.Symbol) and resolved(k.module, target.name) is None:
        return k.guarded(unit, statement, _outside(k, unit, target.name, result))
    found = call_of(k.module, k.code.units, statement)
    fetch = None if isinstance(target, ptx.Symbol) else k.fetch(unit, target)
    ways = {k.places.symbols["", u.function.name]: _way(k, unit, u, result, given, at) for _, u, _ in found}

    def run(c: Cluster, mask: Mask) -> None:
        if fetch is None:
            next(iter(ways.values()))(c, mask)
            return
        value, known = (np.broadcast_to(x, mask.shape) for x in fetch())
        for address in np.unique(value[mask]).tolist():
            some = mask & (value == address)
            if known[some].any() or address not in ways:
                c.give_up(some, f"'{statement.text}' calls what data says")
            else:
                ways[address](c, some)

    return k.guarded(unit, statement, run)


Carry = Callable[[Cluster, Mask], None]


def _way(
    k: Compiler, unit: Unit, callee: Unit, result: tuple[ptx.Operand, ...], given: tuple[ptx.Operand, ...], at: int
) -> Carry:
    """Into a function: the arguments are copied, the results are to be copied when it returns."""
    function = callee.function
    into = [_copy(k, (unit, a), (callee, f)) for a, f in zip(given, function.parameters, strict=False)]
    back = [_copy(k, (callee, f), (unit, a)) for a, f in zip(result, function.returns, strict=False)]

    def carry(c: Cluster, mask: Mask) -> None:
        for copy in back:
            copy(c, mask)

    def enter(c: Cluster, mask: Mask) -> None:
        for copy in into:
            copy(c, mask)
        for lane in np.flatnonzero(mask).tolist():
            if any(place == at + 1 for place, _ in c.returns[lane]):
                c.give_up(mask, f"{function.name} calls itself")
                return
            c.returns[lane].append((at + 1, carry))
        c.place[mask] = callee.start

    return enter


Spot = tuple[Unit, ptx.Operand | ptx.Parameter]


def _copy(k: Compiler, source: Spot, target: Spot) -> Carry:
    """Copies an argument: a register, an immediate or a variable of the lane's own."""
    size = next((x.size or 0 for _, x in (source, target) if isinstance(x, ptx.Parameter)), 0)
    here, there = (_spot(k, *x) for x in (source, target))
    values, known = k.lanes.values, k.lanes.quality

    def copy(c: Cluster, mask: Mask) -> None:
        lanes = np.flatnonzero(mask)
        for offset in range(0, max(size, 1), 8):
            length = min(8, size - offset) or 8
            if isinstance(here, int):
                at = np.full(len(lanes), here + offset, np.uint64)
                value, sure = c.store.load(at, length, lanes)
            else:
                given = here()
                value, sure = np.broadcast_to(given[0], mask.shape)[lanes], np.broadcast_to(given[1], mask.shape)[lanes]
            if isinstance(there, int):
                c.store.save(np.full(len(lanes), there + offset, np.uint64), length, lanes, value, sure)
            else:
                assert isinstance(target[1], ptx.Register | ptx.Parameter)
                row = _row(target)
                k.decided.forget((row,), mask, made=True)
                values[row][lanes], known[row][lanes] = value, sure

    return copy


def _row(spot: Spot) -> int:
    unit, what = spot
    name = what.name  # type: ignore[union-attr]
    return unit.frame + next(r.index for r in unit.function.registers if r.name == name)


def _spot(k: Compiler, unit: Unit, what: ptx.Operand | ptx.Parameter) -> int | Fetch:
    """Where an argument is: an address of the lane's own memory, or what fetches it."""
    if isinstance(what, ptx.Symbol | ptx.Parameter):
        if isinstance(what, ptx.Parameter) and what.space == "reg":
            found = next((r for r in unit.function.registers if r.name == what.name), None)
            return k.fetch(unit, found if found is not None else ptx.Immediate(0))
        offset = what.offset if isinstance(what, ptx.Symbol) else 0
        return int(k.symbol(unit, what.name)[0]) + offset
    return k.fetch(unit, what)


HARMLESS = frozenset(("vprintf", "__assertfail", "malloc", "free"))


def _outside(k: Compiler, unit: Unit, name: str, result: tuple[ptx.Operand, ...]) -> Step:
    """A function that the module does not have: the system's, or one that is linked to it later."""
    if name == FAILS:
        return lambda c, mask: c.give_up(mask, "an assertion fails")
    spots = [_spot(k, unit, x) for x in result]

    def run(c: Cluster, mask: Mask) -> Mask:
        if name not in HARMLESS:
            c.trace.gap(f"{name} is not in the module", c.span)
        lanes = np.flatnonzero(mask)
        for spot in spots:
            if isinstance(spot, int):
                unknown = np.full(len(lanes), quality.NOTHING, np.uint8)
                at = np.full(len(lanes), spot, np.uint64)
                c.store.save(at, 8, lanes, np.zeros(len(lanes), np.uint64), unknown)
        return mask

    return run
