"""All ways that a warp may go which looks at words of other clusters, whatever it finds there.

    do word = load(state + other); while (status(word) == EMPTY);         // a look
    sum += value(word);
    if (status(word) == PREFIX) break;

From a look on, a warp is executed on values of which some bits are known (``known_bits``), by what the look may have
found (``warp_states``). Where a branch depends on others, both ways are followed, up to the place at which they meet in
any case (the immediate post-dominator of the branch). There the states are joined: what differs is unknown. Equal
states at a branch are followed once, so a loop that only repeats a look costs one round. In between, a warp may
compute, exchange values, look at words, fence, and load what is published with all that it may have found there; a way
with anything else is refused. So whatever the words hold, the warp does one of the ways that are followed, has no
effect on memory meanwhile, and leaves a value that the joined state stands for.

*It ends.* From every branch at which a state may come back the rest of the ways is followed once more, with what each
word holds in the end, when its cluster has ended; no way may come to a state twice there. A thread that goes on forever
looks at the last values from some time on: that is what a fair scheduler and coherence promise, if the clusters that it
looks at end. From the next such branch on it takes one of these ways, which end. A loop without a look has to end, too.

*Once.* Ways that a warp of another cluster has gone from the same state are not followed again (``explored_ways``).

Lanes for which a branch differs, by a value that is known, go one after the other. Where lanes may each go another way,
they have to be independent: no exchange between lanes is followed there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from functools import partial

import numpy as np

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.lane_arithmetic import low_mask, type_bits
from mcheck.frontend.ptx.lowering import operation_template
from mcheck.ir.scopes import is_grid_fence
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.grid.looks.explored_ways import Branches, go_on_as
from mcheck.simt.grid.looks.function_ways import END
from mcheck.simt.grid.looks.known_bits import Bits, anything, compute
from mcheck.simt.grid.looks.shared_states import SharedStates
from mcheck.simt.grid.looks.warp_exchanges import remember, shuffle, vote
from mcheck.simt.grid.looks.warp_looks import look_at, read_published
from mcheck.simt.grid.looks.warp_states import Lanes, Look, State, join
from mcheck.simt.grid.pairs.reduction import NotReducible

QUIET = frozenset((Kind.SLEEP, Kind.EVENT, Kind.FENCE))
WARP_WIDE = frozenset((Kind.ACTIVE_MASK, Kind.MATRIX_PRODUCT))
"""Computations of a warp, not of a lane alone."""
CARRIES = frozenset(("addc", "subc", "madc"))
"""They read the carry of the lane, which is not followed (9.7.2)."""
MAX_STEPS = 400_000
"""Maximum number of instructions of one exploration."""
FULL = (1 << WARP) - 1
NOT_FOLLOWED = "what a thread does depends on what it finds in words of other clusters"
ENDLESS = "a loop may look at words of other clusters forever"


@dataclass(slots=True)
class Exploration(SharedStates):
    """The exploration of the ways of one warp from a place in a function."""

    look: Look
    """What words may hold, or hold in the end (``final``)."""
    is_look: Callable[[ptx.Statement], bool]
    read: Callable[[Iterable[int]], None]
    """Notes that bytes are read which another cluster has published."""
    check_time: Callable[[], None]
    steps: int = 0

    def run(self, at: int, mask: Lanes, stops: Collection[int]) -> tuple[int, State]:
        """Follow the lanes of a warp from a place to the first one that has to be executed otherwise, or one of the
        ``stops`` where other lanes may join them; returns that, and the state. Raises ``NotReducible``.
        """
        state, start, seen = State(), at, set[tuple[object, ...]]()
        self.lanes = mask
        while at < len(self.unit.function.body) and (at == start or at not in stops):
            statement = self.unit.function.body[at]
            if statement.kind is Kind.BRANCH:
                following = self._branch(at, statement, state, mask)
                if following is None:
                    if not self._free(statement, state, mask):
                        parted = self._try_apart(at, state, mask)
                        if parted is None:
                            break
                        at, state = parted
                        continue
                    at, state = self._fork(at, state, mask, final=False, apart=False)
                    continue
                if following <= at:
                    key = at, *state.key()
                    if key in seen:
                        raise NotReducible(ENDLESS, statement.span)
                    seen.add(key)
                at = following
            elif not self._step(statement, state, mask, final=False, apart=False):
                break
            else:
                at += 1
        state.settle()
        return at, state

    def _try_apart(self, at: int, state: State, mask: Lanes) -> tuple[int, State] | None:
        """Let lanes go different ways, which are known, if all of them are followed here: they may load what is
        published with what they have found.
        """
        if not state.acquired.any():
            return None
        try:
            return self._diverge(at, state, mask, final=False, apart=False)
        except NotReducible:
            return None

    def is_stuck(self, at: int, mask: Lanes) -> bool:
        """Whether lanes that look at words from a place on go round forever, once these hold their last values: whether
        they come to one state twice, on a way that is known.
        """
        state, seen = State(), set[tuple[Hashable, ...]]()
        while at < len(self.unit.function.body):
            statement = self.unit.function.body[at]
            if statement.kind is not Kind.BRANCH:
                if not self._step(statement, state, mask, final=True, apart=False):
                    return False
                at += 1
                continue
            following = self._branch(at, statement, state, mask)
            if following is None:
                if self._free(statement, state, mask):
                    return False
                at, state = self._diverge(at, state, mask, final=True, apart=False)
                continue
            if following <= at:
                key = at, *state.key()
                if key in seen:
                    return True
                seen.add(key)
            at = following
        return False

    # --- several ways ---------------------------------------------------------------------------------------------

    def _fork(self, at: int, state: State, mask: Lanes, *, final: bool, apart: bool) -> tuple[int, State]:
        """Follow all ways from a branch to where they meet; returns that place, and the joined state."""
        end = self.ways.meets.get(at, END)
        if end == END:
            raise NotReducible(NOT_FOLLOWED, self.unit.function.body[at].span)
        mixed = not self._same_way(at, state, mask)
        found = self._follow(at, state, mask, end, final=final, apart=apart or mixed)
        return end, join(found, self.base_row, mixed=mixed)

    def _follow(
        self, at: int, state: State, mask: Lanes, end: int, *, final: bool, apart: bool, only_ends: bool = False
    ) -> list[State]:
        """The states in which lanes come to ``end`` from a place at which they may go several ways; ``only_ends``:
        those do not matter, so nothing is followed of which it is known that it ends.
        """
        lanes, todo, branches = mask, [(at, state, -1)], Branches()
        shares = not final and np.array_equal(lanes, self.lanes)
        while todo:
            at, state, before = todo.pop()
            while at != end:
                mask = lanes & state.here
                if at >= len(self.unit.function.body):
                    raise NotReducible(NOT_FOLLOWED, self.unit.function.body[-1].span)
                statement = self.unit.function.body[at]
                if statement.kind is not Kind.BRANCH:
                    if not self._step(statement, state, mask, final=final, apart=apart):
                        raise NotReducible(NOT_FOLLOWED, statement.span)
                    at += 1
                    continue
                following = self._branch(at, statement, state, mask)
                if following is not None and following > at:
                    at = following
                    continue
                shared = self._shared_key(end, at, state, mask, apart=apart) if shares or only_ends else None
                if only_ends and shared in self.explored.ended:
                    break
                local = at, mask.tobytes(), *state.key(self.ways.live[at])
                number, is_new = branches.come(before, local, shared, at, state)
                before = number
                if not is_new:
                    break
                if shares and shared in self.explored.ends:
                    named = self._named(end, at, state)
                    for one in self.explored.ends[shared]:
                        self._note_end(branches, number, go_on_as(state, one, named), end)
                    break
                if following is not None:
                    at = following
                elif not self._free(statement, state, mask):
                    at, state = self._diverge(at, state, mask, final=final, apart=apart)
                elif not apart and not self._same_way(at, state, mask):
                    at, state = self._fork(at, state, mask, final=final, apart=False)
                else:
                    way, *others = self._leave(at, statement, state, mask, apart=apart)
                    at, state = way
                    todo += [(place, other, number) for place, other in others]
            else:
                self._note_end(branches, before, state, end)
        again = branches.repeated()
        if final and again:
            raise NotReducible(ENDLESS, self.unit.function.body[again[0].at].span)
        for branch in () if final else again:
            here = lanes & branch.state.here
            self._follow(branch.at, branch.state.copy(), here, end, final=True, apart=apart, only_ends=True)
        found = branches.found()
        if only_ends:
            self.explored.ended.update(one.shared for one in branches.nodes)
        elif not found:
            raise NotReducible(ENDLESS, self.unit.function.body[end].span)
        if shares and self._may_share():
            self.explored.ends |= branches.ends_by_branch(self.base_row)
        return found

    def _note_end(self, branches: Branches, number: int, state: State, end: int) -> None:
        branches.ends.setdefault(number, {}).setdefault(state.key(self.ways.live[end]), state)

    def _diverge(self, at: int, state: State, mask: Lanes, *, final: bool, apart: bool) -> tuple[int, State]:
        """Let lanes whose ways are known, and differ, go one after the other to where they meet."""
        statement, end = self.unit.function.body[at], self.ways.meets.get(at, END)
        assert statement.guard is not None
        if end == END:
            raise NotReducible(NOT_FOLLOWED, statement.span)
        takes = state.settled(self._guard(statement.guard, state))
        taken, stays = self._ways(at, statement)
        for place, some in ((taken, mask & (takes.value != 0)), (stays, mask & (takes.value == 0))):
            ways = self._follow(place, state.copy(), some, end, final=final, apart=apart)
            state = join(ways, self.base_row, mixed=apart)
        return end, state

    def _leave(
        self, at: int, statement: ptx.Statement, state: State, mask: Lanes, *, apart: bool
    ) -> list[tuple[int, State]]:
        """The ways from a branch that are possible, with what each tells of what the lanes have found."""
        guard = statement.guard
        assert guard is not None
        row, held = self.unit.frame + guard.register.index, self._row(state, self.unit.frame + guard.register.index)
        found = []
        for place, holds in zip(self._ways(at, statement), (True, False), strict=True):
            other = state.copy()
            if other.restrict(row, holds != guard.negated, held, mask, apart=apart):
                found.append((place, other))
        if not found:
            raise NotReducible(NOT_FOLLOWED, statement.span)
        return found

    def _may_share(self) -> bool:
        """Whether the ways that have been followed are those of all warps in the same states."""
        return True

    # --- one instruction ------------------------------------------------------------------------------------------

    def _step(self, statement: ptx.Statement, state: State, mask: Lanes, *, final: bool, apart: bool) -> bool:
        """Execute an instruction that is no branch; ``False`` if it is none that is followed here."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise NotReducible(ENDLESS, statement.span)
        if not self.steps % 256:
            self.check_time()
        kind = statement.kind
        if kind is Kind.FENCE and statement.guard is None and self._acquires(statement):
            state.acquired = state.acquired | mask
        if kind in QUIET:
            return True
        results: list[Bits] | None
        same = np.zeros_like(mask)
        guard = None if statement.guard is None else self._guard(statement.guard, state)
        mine = mask if guard is None else mask & ((guard.value != 0) | (guard.unknown != 0))
        if kind in WARP_WIDE:
            return False
        if statement.only_computes:
            results = compute(statement, lambda o: self._cases(o, state), (WARP,))
            carries = statement.opcode.name in CARRIES
            if guard is None and not carries and self._reads_same(statement, state, mask):
                same = mask
        elif self.is_look(statement):
            if guard is not None and (state.settled(guard).unknown[mask] != 0).any():
                return False
            mine = mine if mine.ndim < 2 else np.asarray((mine & state.alive).any(axis=0))
            guard = None if guard is None else state.settled(guard)
            address = self._operand(statement.place, state)
            results = look_at(statement, address, state, mine, partial(self.look, final=final))
            if results is None:
                return False
            if int(np.count_nonzero(mine)) == 1:
                same = mine
        elif kind is Kind.LOAD:
            op = operation_template(self.unit.function, statement)
            reads = read_published(op, self._cases(statement.place, state), state, mine)
            if reads is None:
                return False
            self.read(reads)
            results = None
        elif kind in (Kind.SHUFFLE, Kind.VOTE, Kind.WARP_REDUCTION, Kind.MATCH, Kind.WARP_BARRIER):
            if apart or guard is not None or not self._all_come(statement, state, mask):
                return False
            results, everywhere = self._exchange(statement, state, mask)
            same = mask if everywhere else same
        else:
            return False
        told = None
        if kind is Kind.VOTE:
            told = remember(_mode(statement), self._cases(statement.operands[1], state), mask)
        self._write(statement, state, results, mine, guard, same)
        if told is not None and statement.defs:
            state.votes[self.unit.frame + statement.defs[0].index] = told
        return True

    def _write(
        self, statement: ptx.Statement, state: State, results: list[Bits] | None, mine: Lanes, guard: Bits | None,
        same: Lanes,
    ) -> None:  # fmt: skip
        """Write the results of an instruction, ``None`` if nothing is known of them, in these lanes."""
        targets = statement.defs
        if results is None or len(results) != len(targets):
            results = [anything(64, (WARP,)) for _ in targets]
        for register, result in zip(targets, results, strict=True):
            row, width = self.unit.frame + register.index, low_mask(type_bits(register.type) or 64)
            shape = np.broadcast_shapes(result.value.shape, (WARP,))
            made = Bits(np.broadcast_to(result.value & width, shape), np.broadcast_to(result.unknown & width, shape))
            before = self._row(state, row)
            if guard is not None:
                made = made.where(guard.unknown == 0, made.join(before))
            state.write(row, made.where(mine, before), same)

    def _acquires(self, statement: ptx.Statement) -> bool:
        """Whether a fence acquires what other clusters have released."""
        return is_grid_fence(operation_template(self.unit.function, statement))

    def _all_come(self, statement: ptx.Statement, state: State, mask: Lanes) -> bool:
        """Whether the lanes that an instruction is for are those that are here."""
        members = self._operand(statement.operands[-1], state)
        here = sum(1 << k for k in np.flatnonzero(mask).tolist())
        given = np.broadcast_to(members.value, mask.shape)[mask]
        return not members.unknown.any() and bool((given & np.uint64(FULL) == here).all())

    def _exchange(self, statement: ptx.Statement, state: State, mask: Lanes) -> tuple[list[Bits] | None, bool]:
        """The results of an exchange between lanes, and whether all get the same one."""
        if statement.kind is Kind.VOTE:
            return [vote(_mode(statement), self._operand(statement.operands[1], state), mask)], True
        if statement.kind is Kind.SHUFFLE:
            given, by, clamps = (self._operand(o, state) for o in statement.operands[1:4])
            return shuffle(statement, given, by, clamps, mask)
        return None, statement.kind is Kind.WARP_REDUCTION

    # --- branches -------------------------------------------------------------------------------------------------

    def _ways(self, at: int, statement: ptx.Statement) -> tuple[int, int]:
        label = statement.operands[0]
        assert isinstance(label, ptx.Label)
        return self.unit.function.labels[label.name], at + 1

    def _branch(self, at: int, statement: ptx.Statement, state: State, mask: Lanes) -> int | None:
        """Where all lanes go on; ``None`` if that is not known, or not the same."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise NotReducible(ENDLESS, statement.span)
        taken, stays = self._ways(at, statement)
        if statement.guard is None:
            return taken
        guard = state.settled(self._guard(statement.guard, state))
        if (guard.unknown[mask] != 0).any():
            return None
        takes = guard.value[mask] != 0
        return taken if takes.all() else stays if not takes.any() else None

    def _free(self, statement: ptx.Statement, state: State, mask: Lanes) -> bool:
        """Whether the way of a lane is unknown."""
        assert statement.guard is not None
        return bool((state.settled(self._guard(statement.guard, state)).unknown[mask] != 0).any())

    def _same_way(self, at: int, state: State, mask: Lanes) -> bool:
        """Whether all lanes go the same way, whichever it is."""
        guard = self.unit.function.body[at].guard
        assert guard is not None
        if np.count_nonzero(mask) == 1:
            return True
        row = self.unit.frame + guard.register.index
        return bool(self._uniform_row(state, row)[mask].all())


def _mode(statement: ptx.Statement) -> str:
    return statement.opcode.choice(("any", "all", "uni", "ballot")) or ""
