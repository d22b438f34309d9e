"""Programs about one CTA's mbarriers by brute force: every interleaving, and polls as stale as they may be.

Written from the text of PTX ISA 9.7.13.15 and for reading beside it; nothing of the engines is used. An mbarrier is its
state machine (phase, expected, pending, tx-count). Its changes of phase are its *epochs*; a poll may read any epoch
that is not older than what its thread has seen of the object, or has been told by whoever released to it. A try_wait
by parity is answered any time before its answer is needed, the object is gone or the thread ends, as on a chip. Vector
clocks say what is ordered, and so which plain accesses race and whether an operation comes after the initialisation.

For programs in which all operations release and acquire (``expect_tx`` and ``complete_tx`` are relaxed) at scopes that
are wide enough, and one mbarrier, this is the model; with two mbarriers a weak memory does more than interleavings do,
and what is found here is only some of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tests.oracle.reading import NotForThis, Step

MAXIMUM = 2**20 - 1
LIMIT = 400_000
"""States that are looked at."""

Clock = tuple[int, ...]
Token = tuple[str, int, int, int, bool]
"""A state operand: object, life, phase, pending arrivals before, from a noComplete arrive."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """A phase of one life of an object (``phase`` -1: no object there), and what its release arrivals publish."""

    life: int
    phase: int
    clock: Clock
    views: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Object:
    """An mbarrier: its epochs, and the counts of the latest."""

    epochs: tuple[Epoch, ...]
    expected: int = 0
    pending: int = 0
    tx: int = 0
    born: tuple[int, int] = (0, 0)  # thread and time of its init

    @property
    def valid(self) -> bool:
        return self.epochs[-1].phase >= 0


@dataclass(frozen=True, slots=True)
class Thread:
    """Where a thread is; ``views`` are the oldest epochs that it may read, ``clock`` what comes before it."""

    at: int
    clock: Clock
    views: tuple[int, ...]
    registers: tuple[tuple[str, int | Token | None], ...] = ()
    end: str = ""  # "", "over", "undefined"
    arrived: bool = False  # at bar.sync
    open: tuple[tuple[tuple[str, ...], str, int, int], ...] = ()
    """Suspended polls: registers that get the answer, object, parity, the oldest epoch that they may read."""


@dataclass(frozen=True, slots=True)
class State:
    """Everything; ``writes`` and ``reads`` of x by thread, ``value`` of its latest write."""

    threads: tuple[Thread, ...]
    objects: tuple[Object, ...]
    writes: Clock
    reads: Clock
    value: int | None = None


@dataclass(slots=True)
class Found:
    """What all executions together show: final registers, codes of misuse, races, deadlocks."""

    finals: set[tuple[tuple[str, int | None], ...]] = field(default_factory=set)
    codes: set[str] = field(default_factory=set)
    race: bool = False
    dead: bool = False
    dead_beside_misuse: bool = False
    states: int = 0


def _forget(t: Thread, register: str) -> Thread:
    """A register is written anew: what a suspended poll would give it is lost."""
    return replace(t, open=tuple(("" if r == register else r, *more) for r, *more in t.open)) if register else t


def _join(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(max, a, b))


class Machine:
    """The threads of one program, and all that they may do."""

    def __init__(self, threads: Mapping[str, tuple[Step, ...]], shown: tuple[tuple[str, str], ...]) -> None:
        self.names = list(threads)
        self.code = list(threads.values())
        self.shown = shown
        self.bars = sorted({s.bar for steps in self.code for s in steps if s.bar})
        self.found = Found()

    def run(self) -> Found:
        """Looks at every state that can be reached."""
        none = (0,) * len(self.code)
        views = (0,) * len(self.bars)
        objects = tuple(Object((Epoch(0, -1, none, views),)) for _ in self.bars)
        first = State(
            tuple(Thread(0, tuple(int(k == n) for k in range(len(self.code))), views) for n in range(len(self.code))),
            objects,
            none,
            none,
        )
        seen, waiting = {first}, [first]
        while waiting:
            state = waiting.pop()
            after = list(self._after(state))
            if not any(fresh for _, fresh in after):  # who polls forever sees the latest state at last
                self._ended(state)
            for new, _ in after:
                if new not in seen:
                    seen.add(new)
                    waiting.append(new)
            if len(seen) > LIMIT:
                raise NotForThis("too many states")
        self.found.states = len(seen)
        return self.found

    def _ended(self, state: State) -> None:
        ends = {t.end for t in state.threads}
        if ends == {"over"}:
            self.found.finals.add(
                tuple((f"{name}:{register}", self._value(state, name, register)) for name, register in self.shown)
            )
        elif "" in ends and "undefined" in ends:
            self.found.dead_beside_misuse = True
        elif "" in ends:
            self.found.dead = True

    def _value(self, state: State, name: str, register: str) -> int | None:
        value = dict(state.threads[self.names.index(name)].registers).get(register)
        return value if isinstance(value, int) else None

    # --- steps --------------------------------------------------------------------------------------------

    def _after(self, state: State) -> Iterator[tuple[State, bool]]:
        """What may come next, and whether it needs no wait that reads an old epoch."""
        if meeting := self._meeting(state):
            yield meeting, True
        for n, t in enumerate(state.threads):
            if t.end:
                continue
            for k, (names, bar, parity, oldest) in enumerate(t.open):
                free = replace(t, open=t.open[:k] + t.open[k + 1 :])
                yield from self._answered(state, n, free, Step("poll", bar, (*names, parity)), oldest)
            if t.arrived:
                continue
            if t.at == len(self.code[n]):
                if not t.open:
                    yield self._with(state, n, replace(t, end="over")), True
                continue
            step = self.code[n][t.at]
            if self._needs(t, step):
                continue
            if step.guard and self._register(t, step.guard[0]) != step.guard[1]:
                yield self._with(state, n, replace(t, at=t.at + 1)), True
                continue
            if step.name == "try":
                b = self.bars.index(step.bar)
                if not state.objects[b].valid and t.views[b] == len(state.objects[b].epochs) - 1:
                    yield self._stop(state, n, "UB201"), True
                    continue
                register, parity = step.args
                on = _forget(replace(t, at=t.at + 1), str(register))
                yield (
                    self._with(
                        state, n, replace(on, open=(*on.open, ((str(register),), step.bar, int(parity), t.views[b])))
                    ),
                    True,
                )
                continue
            if step.name in ("poll", "await"):
                yield from self._wait(state, n, t, step)
            else:
                yield self._do(state, n, t, step), True

    def _meeting(self, state: State) -> State | None:
        """bar.sync: everyone who has not ended is there."""
        there = [t for t in state.threads if t.arrived]
        if not there or any(t.end != "over" and not t.arrived for t in state.threads):
            return None
        clock, views = there[0].clock, there[0].views
        for t in there:
            clock, views = _join(clock, t.clock), _join(views, t.views)
        threads = tuple(
            replace(t, at=t.at + 1, arrived=False, views=views, clock=_ticked(clock, n)) if t.arrived else t
            for n, t in enumerate(state.threads)
        )
        return replace(state, threads=threads)

    def _do(self, state: State, n: int, t: Thread, step: Step) -> State:
        on = replace(t, at=t.at + 1)
        match step.name:
            case "exit":
                return self._with(state, n, replace(t, end="over"))
            case "bar.sync":
                return self._with(state, n, replace(t, arrived=True))
            case "unless":
                register, wanted, end = step.args
                inside = self._register(t, str(register)) == wanted
                return self._with(state, n, on if inside else replace(t, at=int(end)))
            case "select":
                return self._with(state, n, self._selected(t, on, *map(str, step.args)))
            case "load":
                return self._load(state, n, on, str(step.args[0]))
            case "store":
                return self._store(state, n, on, int(step.args[0]))
            case "pending":
                return self._pending(state, n, t, step)
            case _:
                return self._change(state, n, t, step)

    def _selected(self, t: Thread, on: Thread, target: str, source: str) -> Thread:
        """The answer of a suspended poll goes into one more register; nothing waits for it yet."""
        on = _forget(on, target)
        if not any(source in names for names, *_ in t.open):
            return _set(on, target, self._register(t, source))
        given = ((*names, target) if source in names else names for names, *_ in on.open)
        return replace(on, open=tuple((names, *more) for names, (_, *more) in zip(given, on.open, strict=True)))

    def _register(self, t: Thread, name: str) -> int | Token:
        value = dict(t.registers).get(name)
        if value is None:
            raise NotForThis(f"{name} has no value")
        return value

    def _with(self, state: State, n: int, t: Thread) -> State:
        return replace(state, threads=(*state.threads[:n], t, *state.threads[n + 1 :]))

    def _stop(self, state: State, n: int, code: str) -> State:
        self.found.codes.add(code)
        return self._with(state, n, replace(state.threads[n], end="undefined"))

    # --- x --------------------------------------------------------------------------------------------------

    def _load(self, state: State, n: int, on: Thread, register: str) -> State:
        if any(w > on.clock[k] for k, w in enumerate(state.writes) if k != n):
            self.found.race = True
        reads = tuple(on.clock[n] if k == n else r for k, r in enumerate(state.reads))
        return replace(self._with(state, n, _set(on, register, state.value)), reads=reads)

    def _store(self, state: State, n: int, on: Thread, value: int) -> State:
        for clock in (state.writes, state.reads):
            if any(c > on.clock[k] for k, c in enumerate(clock) if k != n):
                self.found.race = True
        writes = tuple(on.clock[n] if k == n else w for k, w in enumerate(state.writes))
        return replace(self._with(state, n, on), writes=writes, value=value)

    # --- mbarriers --------------------------------------------------------------------------------------------

    def _pending(self, state: State, n: int, t: Thread, step: Step) -> State:
        """9.7.13.15.17: only of a state that a noComplete arrive returned."""
        token = self._register(t, str(step.args[1]))
        if isinstance(token, int) or not token[4]:
            return self._stop(state, n, "UB211")
        return self._with(state, n, _set(replace(t, at=t.at + 1), str(step.args[0]), token[3]))

    def _ordered(self, o: Object, t: Thread) -> None:
        """9.7.13.15.3: an operation comes after the initialisation."""
        if t.clock[o.born[0]] < o.born[1]:
            self.found.codes.add("UB201")

    def _needs(self, t: Thread, step: Step) -> bool:
        """Whether a step waits for the answer of a poll that is suspended."""
        read = {step.guard[0] if step.guard else "", str(step.args[0]) if step.name == "unless" else ""}
        gone = step.name in ("init", "inval", "exit")
        return any(gone or not read.isdisjoint(names) for names, *_ in t.open)

    def _wait(self, state: State, n: int, t: Thread, step: Step) -> Iterator[tuple[State, bool]]:
        on = replace(t, at=t.at + 1)
        return self._answered(state, n, _forget(on, str(step.args[0])), step, t.views[self.bars.index(step.bar)])

    def _answered(self, state: State, n: int, t: Thread, step: Step, oldest: int) -> Iterator[tuple[State, bool]]:
        """9.7.13.15.16: false for the phase that is open, true for the one before."""
        b = self.bars.index(step.bar)
        o = state.objects[b]
        *names, meant = step.args
        newest = len(o.epochs) - 1
        for k in range(oldest, newest + 1):
            e = o.epochs[k]
            if e.phase < 0:
                yield self._stop(state, n, "UB201"), k == newest
                continue
            self._ordered(o, t)
            passed = self._passed(t, step.bar, e, meant)
            if passed is None:
                yield self._stop(state, n, "UB210"), k == newest
                continue
            if not passed and step.name == "await":
                continue
            on = replace(t, views=tuple(max(k, v) if j == b else v for j, v in enumerate(t.views)))
            for name in filter(None, names):
                on = _set(on, str(name), int(passed))
            for before in o.epochs[:k] if passed else ():
                if before.life == e.life:
                    on = replace(on, clock=_join(on.clock, before.clock), views=_join(on.views, before.views))
            yield self._with(state, n, on), step.name == "poll" or k == newest

    def _passed(self, t: Thread, bar: str, e: Epoch, meant: int | str) -> bool | None:
        if isinstance(meant, int):
            if meant > 1:
                raise NotForThis("a parity is 0 or 1")
            return (e.phase - 1) % 2 == meant
        token = self._register(t, meant)
        if isinstance(token, int) or token[0] != bar or token[1] != e.life or e.phase - token[2] not in (0, 1):
            return None
        return e.phase == token[2] + 1

    def _change(self, state: State, n: int, t: Thread, step: Step) -> State:
        """Everything that changes the object: it acts on the latest state."""
        b = self.bars.index(step.bar)
        o = state.objects[b]
        if step.name == "init":
            return self._init(state, n, t, b, int(step.args[0]))
        if not o.valid:
            return self._stop(state, n, "UB201")
        self._ordered(o, t)
        if step.name == "inval":
            epochs = (*o.epochs, Epoch(o.epochs[-1].life, -1, (0,) * len(t.clock), (0,) * len(t.views)))
            return self._changed(state, n, t, b, replace(o, epochs=epochs, expected=0, pending=0, tx=0))
        if step.name in ("expect", "complete"):
            amount = int(step.args[0])
            if step.name == "complete":
                return self._completed(state, n, t, b, o, -amount, 0)
            if o.pending == 0 and o.tx < 0 and o.tx + amount == 0:
                return self._stop(state, n, "UB217")
            if abs(o.tx + amount) > MAXIMUM:
                return self._stop(state, n, "UB205")
            return self._changed(state, n, t, b, replace(o, tx=o.tx + amount))
        return self._arrive(state, n, t, b, step)

    def _init(self, state: State, n: int, t: Thread, b: int, count: int) -> State:
        o = state.objects[b]
        if o.valid:
            return self._stop(state, n, "UB202")
        if not 1 <= count <= MAXIMUM:
            return self._stop(state, n, "UB205")
        epoch = Epoch(o.epochs[-1].life + 1, 0, (0,) * len(t.clock), (0,) * len(t.views))
        new = Object((*o.epochs, epoch), count, count, 0, (n, t.clock[n]))
        return self._changed(state, n, t, b, new)

    def _arrive(self, state: State, n: int, t: Thread, b: int, step: Step) -> State:
        """9.7.13.15.13 and .14: expect-tx if it is fused, then drop, then arrive-on."""
        o = state.objects[b]
        register, count, tx, kind = step.args
        count, tx = int(count), int(tx)
        if not 1 <= count <= o.pending:
            return self._stop(state, n, "UB205")
        if tx >= 0:
            o = replace(o, tx=o.tx + tx)
        if step.name == "drop":
            if o.expected <= count:
                return self._stop(state, n, "UB207")
            o = replace(o, expected=o.expected - count)
        if kind and o.pending == count and o.tx == 0:
            return self._stop(state, n, "UB206")
        token: Token = (step.bar, o.epochs[-1].life, o.epochs[-1].phase, o.pending, bool(kind))
        last = o.epochs[-1]
        told = replace(last, clock=_join(last.clock, t.clock), views=_join(last.views, t.views))
        o = replace(o, epochs=(*o.epochs[:-1], told))
        after = self._completed(state, n, t, b, o, 0, count)
        return self._with(after, n, _set(after.threads[n], str(register), token)) if register else after

    def _completed(self, state: State, n: int, t: Thread, b: int, o: Object, tx: int, arrivals: int) -> State:
        """Applies a signal or an arrival; 9.7.13.15.6: with nothing pending and no bytes due the next phase begins."""
        o = replace(o, tx=o.tx + tx, pending=o.pending - arrivals)
        if abs(o.tx) > MAXIMUM:
            return self._stop(state, n, "UB205")
        if o.pending == 0 and o.tx == 0:
            last = o.epochs[-1]
            fresh = Epoch(last.life, last.phase + 1, (0,) * len(t.clock), (0,) * len(t.views))
            o = replace(o, epochs=(*o.epochs, fresh), pending=o.expected)
        return self._changed(state, n, t, b, o)

    def _changed(self, state: State, n: int, t: Thread, b: int, o: Object) -> State:
        """A thread has changed an object, and can read nothing older of it from now on."""
        views = tuple(len(o.epochs) - 1 if j == b else v for j, v in enumerate(t.views))
        on = replace(t, at=t.at + 1, views=views, clock=_ticked(t.clock, n))
        objects = (*state.objects[:b], o, *state.objects[b + 1 :])
        return replace(self._with(state, n, on), objects=objects)


def _ticked(clock: Clock, n: int) -> Clock:
    return tuple(c + 1 if k == n else c for k, c in enumerate(clock))


def _set(t: Thread, register: str, value: int | Token | None) -> Thread:
    known = dict(t.registers)
    known[register] = value
    return replace(t, registers=tuple(sorted(known.items(), key=lambda item: item[0])))
