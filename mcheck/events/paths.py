"""Symbolic execution of a thread: its paths with unknown read values, forking at branches that depend on them.

A path is found once, with terms for what its reads return; which writes they read from is the solver's business. An
iteration of a loop that has no effect and comes back to the same live registers is not followed again: the execution
without it is explored anyway, and every axiom holds of fewer events if it holds of more. The path up to there is kept
as ``stuck`` for the question whether it may go on forever. What such an iteration reads may race, though, or be no
mbarrier yet, where a later one comes behind a synchronisation: one of them is kept where there are such reads
(``mcheck.events.failed_attempts``), before the one that ends the loop and before the one that goes on forever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

from mcheck.base.errors import Unsupported
from mcheck.base.records import dataclass
from mcheck.cat.tags import Tag
from mcheck.events.emit import Emitter
from mcheck.events.event import Event, Path
from mcheck.events.model_options import Semantics
from mcheck.events.thread_state import State, Visit
from mcheck.ir.liveness import live_registers_at, loop_heads
from mcheck.ir.ops import (
    Branch,
    BulkCopy,
    Exit,
    Label,
    Op,
    TensorCopy,
    Wgmma,
)
from mcheck.ir.program import Program, Thread
from mcheck.semantics.terms import Term, Uid, reads_of

MAX_STEPS = 200_000
MAX_PATHS = 20_000
MAX_ITERATIONS = 4096
"""The maximum iterations of a loop without effects whose registers never repeat."""
MAX_LOOKS = 32
"""The same for a loop whose exit depends on a read or on an mbarrier test: a poll that counts its tries."""

Domain = Callable[[Uid, State], tuple[int, ...] | None]


@dataclass(slots=True)
class Walker:
    """Enumerates the paths of one thread.

    ``choices`` gives the raw values that an event may return, for operands that must be known (addresses, barrier
    numbers);
    ``wanted`` are the registers that the condition names; ``failed_attempts`` says whether an iteration without effect
    may be wrong by itself.
    """

    program: Program
    thread: Thread
    semantics: Semantics
    unroll: int
    wanted: frozenset[str]
    domain: Domain
    unsure: Callable[[Uid, State], bool]
    failed_attempts: Callable[[Sequence[Event]], bool]
    deadline: Callable[[], None] = lambda: None
    steps: int = 0
    paths: list[Path] = field(default_factory=list)

    def run(self) -> list[Path]:
        """Enumerate all paths, in the order of the code."""
        emitter = Emitter(
            self.program, self.thread, self.semantics, self.domain, self.unsure, self.failed_attempts, self.unroll
        )
        live = live_registers_at(self.thread, loop_heads(self.thread), set(self.wanted))
        todo = [emitter.start()]
        while todo:
            state: State | None = todo.pop()
            if state is not None and state.ended:
                self._finish(state, state.ended)
                continue
            while state is not None:
                state = self._advance(emitter, live, state, todo)
            if len(self.paths) > MAX_PATHS:
                raise Unsupported(f"more than {MAX_PATHS} paths through thread {self.thread.name}")
        return self.paths

    def _advance(
        self, emitter: Emitter, live: Mapping[int, tuple[str, ...]], state: State, todo: list[State]
    ) -> State | None:
        """Execute the next operation of a path: the state to go on with, ``None`` where the path ends. Forks of it are
        added to ``todo``; ``live`` are the live registers at the heads of loops.
        """
        self.steps += 1
        if self.steps % 1024 == 0:
            self.deadline()
        if self.steps > MAX_STEPS:
            self._finish(state, "cut")
            return None
        if state.pc >= len(self.thread.code):
            self._finish(state, "end")
            return None
        if state.pc in live and state.arrived != state.pc:
            state.arrived = state.pc
            ending = self._revisit(state, live[state.pc])
            if isinstance(ending, str):
                self._finish(state, ending)
                return None
            if ending is not None:
                for fork in ending:
                    fork.arrived = -1
                todo += ending
                return None
        op = self.thread.code[state.pc]
        if isinstance(op, Label):
            state.pc += 1
            return state
        state.arrived = -1
        if op.guard is not None:
            term = state.registers.get(op.guard.reg.name, 0)
            runs, skips = self._decide(state, term, taken=not op.guard.negated)
            if skips is not None:
                skips.pc += 1
                if runs is None:
                    return skips
                todo.append(skips)
            assert runs is not None
            state = runs
        match op:
            case Exit():
                self._finish(state, "end")
                return None
            case Branch():
                return self._branch(emitter, op, state, todo)
        following = self._execute(emitter, op, state)
        todo += following[:0:-1]
        if following and following[0].ended:
            self._finish(following[0], following[0].ended)
            return None
        return following[0] if following else None

    def _branch(self, emitter: Emitter, op: Branch, state: State, todo: list[State]) -> State:
        """Execute a branch: the state that stays, if both ways are possible."""
        if op.condition is None:
            state.pc = self.thread.labels[op.target]
            return state
        go, stay = self._decide(state, emitter.term(op.condition, state), taken=True)
        if go is not None:
            go.pc = self.thread.labels[op.target]
        if stay is None:
            assert go is not None
            return go
        stay.pc += 1
        if go is not None:
            todo.append(go)
        return stay

    def _execute(self, emitter: Emitter, op: Op, state: State) -> list[State]:
        """Execute one operation: the states after it; forks first over operands whose value must be known."""
        unknown = emitter.needs(op, state)
        if unknown is None:
            return emitter.execute(op, state)
        out: list[State] = []
        for fork in self._concretise(state, unknown):
            out += self._execute(emitter, op, fork)
        return out

    def _concretise(self, state: State, term: Term) -> Iterator[State]:
        """Fork for every combination of values of the events that ``term`` depends on."""
        uids = sorted(u for u in reads_of(term) if u not in state.known)
        if not uids:  # nothing that a read returns makes it known
            self._finish(state, "unknown")
            return
        uid = uids[0]
        values = self.domain(uid, state)
        if values is None:
            raise Unsupported("the value of an operand depends on too many reads to enumerate")
        for value in values:
            fork = state.fork()
            fork.assume(("e", uid), value)
            yield fork
        if state.events[uid[1]].size:
            self._finish(state.exclude_values(uid, values), "unknown")

    def _revisit(self, state: State, live: tuple[str, ...]) -> str | list[State] | None:
        """Coming (back) to a loop head: ``None`` to go on, how the path ends, or forks in which what differs is known.

        Registers that hold what was read are compared by value, so that an iteration without effect is followed
        exactly:
        there are finitely many values, and the path ends when a combination of them returns.
        """
        key = tuple((r, state.resolve_term(state.registers.get(r, 0))) for r in live)
        here = ((key, len(state.events)),)
        before = state.visits.get(state.pc)
        if before is None:
            state.visits[state.pc] = Visit(here, state.effects, 0)
            state.forked = False
            return None
        if before.effects == state.effects:
            for old, position in before.seen:
                if old == key:
                    if not state.idle and self.failed_attempts(state.events[position:]):
                        self._finish(_stuck(state.fork(), position), "stuck")
                        state.idle = True
                        state.end_iteration(position, *here)
                        return None
                    _stuck(state, position)
                    return "stuck"
            open_term = next((v for _, v in key if self._is_open(state, v)), None)
            if open_term is not None:
                return list(self._concretise(state, open_term))
            counts = state.forked and len(state.events) > before.seen[0][1]
            if len(before.seen) > (max(MAX_LOOKS, self.unroll) if counts else MAX_ITERATIONS):
                return "cut"
            state.visits[state.pc] = Visit(before.seen + here, state.effects, before.count)
            return None
        again = any(old == key for old, _ in before.seen)
        count = before.count + 1
        if count >= self.unroll and (again or state.forked):
            return "cut"
        state.visits[state.pc] = Visit(here, state.effects, count)
        state.forked = False
        return None

    def _is_open(self, state: State, term: Term) -> bool:
        """Whether a term depends on what was read, and is not known; without effects no round changes what an arrive
        has returned.
        """
        return any(Tag.ARRIVE not in state.events[uid[1]].tags for uid in reads_of(term) if uid not in state.known)

    def _decide(self, state: State, term: Term, *, taken: bool) -> tuple[State | None, State | None]:
        """Fork on a condition: the state in which its truth is ``taken``, and the other one."""
        state.ctrl |= reads_of(term)
        known = state.truth(term)
        if known is not None:
            return (state, None) if known is taken else (None, state)
        state.forked = True
        other = state.fork()
        state.constrain(term, taken)
        other.constrain(term, not taken)
        return state, other

    def _finish(self, state: State, ending: str) -> None:
        if ending == "end" and exits_matter(self.program):
            emitter = Emitter(self.program, self.thread, self.semantics)
            emitter.event(state, self.thread.code[-1] if self.thread.code else Exit(), (Tag.EXIT,))
        code = self.thread.code
        pc = max(min(state.pc, len(code) - 1), 0)
        self.paths.append(state.path(self.thread.index, ending, code[pc] if code else None, pc))


def _stuck(state: State, position: int) -> State:
    """The state, blocked from an event on."""
    state.stuck = tuple(e.uid for e in state.events[position:])
    return state


def exits_matter(program: Program) -> bool:
    """Whether the time of a thread's exit can matter: for remote shared memory, or a barrier without a count."""
    return program.clustered or any(
        (op.facets.synchronises and getattr(op, "count", None) is None)
        or op.facets.converges
        or isinstance(op, BulkCopy | TensorCopy | Wgmma)
        for thread in program.threads
        for op in thread.code
    )
