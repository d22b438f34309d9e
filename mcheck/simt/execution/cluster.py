"""A cluster that is executed, all lanes of one place in the code at a time.

Of the lanes that can go on, those at the lowest place run, up to the next label, branch or wait. So lanes that parted
come together again where the code does; nothing else depends on that they do. What one thread learns of another is
followed in this one order; where control depends on it, ``mcheck.frontend.ptx.taint`` tells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mcheck.base.budget import TimeOut
from mcheck.base.errors import InputError, Span
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.frontend.ptx.memory_layout import ELSEWHERE, ELSEWHERE_SIZE, Places
from mcheck.frontend.ptx.module import Guard, Statement
from mcheck.semantics import mbarrier
from mcheck.semantics.undefined import Misuse
from mcheck.simt.execution.async_registers import Flight
from mcheck.simt.execution.counters import Counters
from mcheck.simt.execution.lanes import WARP, Lanes, Mask, Quality
from mcheck.simt.execution.launch_answers import Answers
from mcheck.simt.execution.memory import Store
from mcheck.simt.execution.path_condition import PathCondition
from mcheck.simt.execution.tensor_memory import TensorMemory
from mcheck.simt.execution.trace import Trace
from mcheck.simt.execution.warp_convergence import Convergence

RUN, DONE, WAITS, MEETS, STANDS, ARRIVED, LATER = range(7)
"""What a lane does: it can go on; has exited; waits for an mbarrier, for its warp, at a barrier, for the cluster; lets
others go first.
"""

MOST_ROUNDS = 20_000
"""Rounds of a loop without an operation that others may notice."""
PATIENCE = 64
"""Rounds after which others go first."""
MOST_VAIN = 4_000
"""Times that values are asked for while nothing happens."""
MOST_IDLE = 256
"""Times that a lane asks for what it knows, others having gone first."""
MOST_STEPS = 6_000_000

Vote = tuple[Mask, Word, Quality, list[int], str]
"""What lanes bring to a ``barrier.red``: predicates, their quality, the rows that get the result, the operation."""
Return = tuple[int, Callable[["Cluster", Mask], None]]
"""Where a call goes on when its function returns, and what carries its results there."""
Meeting = Callable[["Cluster", Mask], None]
"""What lanes that meet have come for."""
Step = Callable[["Cluster", Mask], "Mask | None"]
"""Executes an instruction for the lanes of the mask; those that go on to the next one, ``None`` if the step has said
where each of them goes on."""


class Missing(InputError):
    """A parameter is needed that the launch does not give."""


MOST_CHOSEN = 32
"""So often a lane goes the way that was chosen where nobody knows."""
APART = 1 << 18
"""More bytes than a copy moves: shared memory is smaller."""


@dataclass(slots=True)
class Cluster:
    """The state of the execution. ``place`` is where each lane stands, ``returns`` where its calls return to."""

    lanes: Lanes
    places: Places
    store: Store
    trace: Trace
    steps: list[Step]
    heads: frozenset[int]
    choices: dict[int, bool]
    decided: PathCondition
    place: NDArray[np.int64] = field(init=False)
    status: NDArray[np.int8] = field(init=False)
    rounds: NDArray[np.int64] = field(init=False)
    returns: list[list[Return]] = field(init=False)
    at: int = 0
    span: Span | None = None
    """Where the instruction at hand stands, for those that say what they could not follow."""
    mbarriers: dict[int, mbarrier.State] = field(default_factory=dict)
    waiting: dict[int, list[tuple[Mask, int | None, int | None]]] = field(default_factory=dict)
    waits: dict[int, Span | None] = field(default_factory=dict)
    """By object, where it was waited for last."""
    barriers: dict[tuple[int, int], list[tuple[Mask, int | None, bool]]] = field(default_factory=dict)
    """Who has come to a barrier, with the count and whether they stand there."""
    standing: Mask = field(init=False)
    arrived: Mask = field(init=False)
    peeks: dict[int, tuple[int, int, Span | None]] = field(default_factory=dict)
    """By lane, the wait that a poll which was taken to fail makes necessary: object, parity, where it was polled."""
    open: dict[int, Span] = field(default_factory=dict)
    """Places whose way is not known, and was chosen; ``-1 - k`` is for whether a vote at place ``k`` is unanimous."""
    chosen: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    """By such a place, how often each lane has gone the way that was chosen."""
    tokens: list[int] = field(default_factory=list)
    """By number, the phase in which the arrive came that returned it."""
    meetings: dict[tuple[int, str], list[tuple[Mask, int, Meeting]]] = field(default_factory=dict)
    votes: dict[tuple[int, int], list[Vote]] = field(default_factory=dict)
    answers: Answers = field(default_factory=Answers)
    tensor: TensorMemory = field(default_factory=TensorMemory)
    counters: Counters = field(default_factory=Counters)
    together: Convergence = field(init=False)
    flight: Flight = field(init=False)
    effects: int = 0
    """Operations so far."""
    vain: tuple[int, int] = (0, 0)
    """How many operations there had been when lanes began to spin, and how often they have since."""
    asked: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """By lane and place of a load that others may change, the address and what it brought last."""
    idle: NDArray[np.int64] = field(init=False)
    """How often in a row a lane has asked for what it knew: whoever has something else to do goes first."""
    asking: set[int] = field(default_factory=set)
    """Lanes that have asked for a lock and do not have it yet."""
    locked: bool = False
    """Whether a thread has taken a lock, for which others may have waited that could have had it first."""
    tries: int = 0
    """How often a lane tries in vain to swap what is not there yet."""
    later: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """By lane that lets others go first, the word that it would swap: address, bytes, what it has to hold."""
    tried: dict[int, int] = field(default_factory=dict)
    """How often lanes have tried in vain."""
    vainly: set[int] = field(default_factory=set)
    """Lanes that try in vain since nobody else can go on."""
    puts: bool = False
    """Whether a lane has let others go first."""
    last_leads: bool = False
    """Whether ``elect.sync`` chooses the highest lane, not the lowest."""
    elects: bool = False
    """Whether it had a choice."""
    why_missing: Callable[[Statement], str] = lambda _: ""
    copied: int = 0
    """Copies so far to places in global memory that nobody knows."""

    def __post_init__(self) -> None:
        count = self.lanes.count
        self.place = np.zeros(count, np.int64)
        self.status = np.where(self.lanes.exists, RUN, DONE).astype(np.int8)
        self.rounds = np.zeros(count, np.int64)
        self.idle = np.zeros(count, np.int64)
        self.together = Convergence(self.lanes.exists)
        self.flight = Flight(count)
        self.returns = [[] for _ in range(count)]
        self.standing = np.zeros(count, np.bool_)
        self.arrived = np.zeros(count, np.bool_)

    # --- the run ---------------------------------------------------------------------------------------------

    def elsewhere(self, side: str, count: int) -> NDArray[np.uint64]:
        """Places for the other ends of copies of which nobody knows where they are: who reads there meets nobody, and
        who writes has a place of its own.
        """
        base = self.places.symbols["", ELSEWHERE]
        if side == "src":
            return np.full(count, base, np.uint64)
        numbers = np.arange(self.copied, self.copied + count, dtype=np.uint64) % np.uint64(ELSEWHERE_SIZE // APART - 1)
        self.copied += count
        return np.uint64(base) + (numbers + np.uint64(1)) * np.uint64(APART)

    def run(self, deadline: Callable[[], None]) -> None:
        """All lanes to their ends, or until none can go on."""
        count = 0
        while True:
            if self.later:
                self.try_again()
            ready = self.status == RUN
            if not ready.any():
                if not self.waiting:
                    return
                self.send_on()
                continue
            endless = ready & (self.idle > MOST_IDLE)
            if endless.any() and self.later:
                self.try_in_vain()
                self.idle[endless] = 0
                continue
            if endless.any():
                self.give_up(endless, f"polled {MOST_IDLE} times without progress")
                continue
            turns = np.where(ready, self.rounds // PATIENCE + self.idle, np.iinfo(np.int64).max)
            first = ready & (turns == turns.min())
            self.at = at = int(self.place[first].min())
            mask: Mask | None = first & (self.place == at)
            steps, heads = self.steps, self.heads
            try:
                while True:
                    assert mask is not None
                    mask = steps[at](self, mask)
                    count += 1
                    deadline()
                    if mask is None:
                        break
                    self.at = at = at + 1
                    if at in heads:
                        self.place[mask] = at
                        break
            except TimeOut:
                raise TimeOut(self.so_far()) from None
            if count > MOST_STEPS:
                self.trace.gap(f"the kernel takes more than {MOST_STEPS} steps", None, complete=True)
                return

    def so_far(self) -> str:
        """How far the lanes have come."""
        rounds = int(self.rounds.max(initial=0))
        where = f" near line {self.span.line}" if self.span is not None else ""
        return f"a lane is in round {rounds} of its loops{where}" if rounds else ""

    def go(self, mask: Mask, target: int) -> None:
        """These lanes go on at a place; a way back counts as a round."""
        if target <= self.at:
            self.rounds[mask] += 1
            endless = mask & (self.rounds > MOST_ROUNDS)
            if endless.any():
                self.give_up(endless, f"a loop does not end within {MOST_ROUNDS} rounds")
                mask = mask & ~endless
        self.place[mask] = target

    def give_up(self, mask: Mask, reason: str) -> None:
        """Nobody knows what these lanes do from here on."""
        self.trace.gap(reason, self.span, complete=True)
        self.trace.lost(np.flatnonzero(mask), reason, self.span)
        self.status[mask] = DONE

    def assume(self, said: str) -> None:
        """Notes the assumptions."""
        self.trace.assumptions[said] = None

    def effect(self, mask: Mask) -> None:
        """These lanes have done something that others may notice."""
        self.rounds[mask] = 0
        self.effects += 1

    def asks(self, lanes: NDArray[np.int64], address: Word, value: Word) -> None:
        """These lanes load what others may change, and may come back for it around barriers, which are effects."""
        for lane, where, brought in zip(lanes.tolist(), address.tolist(), value.tolist(), strict=True):
            key, now = (lane, self.at), (where, brought)
            self.idle[lane] = self.idle[lane] + 1 if self.asked.get(key) == now else 0
            self.asked[key] = now

    def spins(self, lanes: NDArray[np.int64]) -> None:
        """These lanes ask for a value that is not there yet; where nothing else happens for long, it never comes."""
        if not len(lanes):
            return
        if self.effects != self.vain[0]:
            self.vain = self.effects, 0
        self.vain = self.effects, self.vain[1] + 1
        if self.vain[1] <= MOST_VAIN:
            return
        if self.later:
            self.try_in_vain()
            self.vain = self.effects, 0
        else:
            self.status[lanes] = WAITS

    def puts_off(self, lane: int, address: int, size: int, expected: int, *, taken: bool) -> bool:
        """Whether a swap is left for later because the word holds something else, or is ``taken`` just now, and others
        may change that. It is in a loop, more likely than not, and each round would be one more that is followed. Here
        every swap succeeds that can; ``tries`` is for those that fail.
        """
        if not taken and self._holds(lane, address, size, expected):
            self.vainly.discard(lane)
            return False
        if self.tried.get(lane, 0) < self.tries or lane in self.vainly:
            self.vainly.discard(lane)
            self.tried[lane] = self.tried.get(lane, 0) + 1
            return False
        self.later[lane] = address, size, expected
        self.status[lane], self.place[lane] = LATER, self.at
        self.puts = True
        return True

    def try_again(self) -> None:
        """Lets those go on whose word holds what they would swap; all, if nobody else can."""
        self._resume([lane for lane, word in self.later.items() if self._holds(lane, *word)])
        if self.later and not (self.status == RUN).any():
            self.try_in_vain()

    def try_in_vain(self) -> None:
        """Lets all go on that would let others go first: those do nothing any more that would help."""
        self.vainly.update(self.later)
        self._resume(list(self.later))

    def _resume(self, lanes: list[int]) -> None:
        for lane in lanes:
            del self.later[lane]
            self.status[lane] = RUN

    def _holds(self, lane: int, address: int, size: int, expected: int) -> bool:
        word, known = self.store.load(np.array([address], np.uint64), size, np.array([lane]))
        return bool(known[0]) or (int(word[0]) - expected) % (1 << 8 * size) == 0

    # --- control -----------------------------------------------------------------------------------------------

    def holds(self, guard: Guard, row: int, mask: Mask, statement: Statement) -> Mask:
        """Those of the lanes for which the guard holds; one way is chosen where it is not known."""
        value = self.lanes.values[row] != 0
        known = self.lanes.quality[row]
        doubt = known[mask]
        if doubt.any():
            value = self._doubtful(value, known, mask, statement, row)
        return np.asarray(mask & ~value if guard.negated else mask & value)

    def _doubtful(self, value: Mask, known: Quality, mask: Mask, statement: Statement, row: int) -> Mask:
        if self.decides(known, mask, statement) & taint.UNKNOWN:
            self.choose(row, mask, self.at, statement.span)
            value = self.lanes.values[row] != 0
        return value

    def decides(self, known: Quality, mask: Mask, statement: Statement) -> int:
        """Notes that what is so far known of a value decides where these lanes go; all bits of its quality."""
        bits = int(np.bitwise_or.reduce(known[mask]))
        if bits & taint.MISSING:
            raise Missing(
                f"'{statement.text}' decides what is executed by a parameter that the launch does not give",
                statement.span, hint=self.why_missing(statement),
            )  # fmt: skip
        if bits & (taint.ORDER | taint.TOGETHER | taint.TOKEN) and not bits & taint.UNKNOWN:
            why = "what was read from other threads" if bits & taint.ORDER else "which lanes come together"
            self.trace.ordered(f"control depends on {why}", statement.span)
        if bits & taint.POLL:
            for lane in np.flatnonzero(mask & ((known & taint.POLL) != 0)).tolist():
                if lane in self.peeks:
                    self.peeks[lane] = (*self.peeks[lane][:2], statement.span)
        return bits

    def choose(self, row: int, mask: Mask, at: int, span: Span, *, voted: bool = False) -> None:
        """Decides a predicate where these lanes do not know it, at a place in the code: for all of them alike, or for
        every other one, where it is ``voted`` upon.
        """
        unknown = self.decided.imply(row, mask)
        if not unknown.any():
            return
        self.open.setdefault(at, span)
        often = self.chosen.setdefault(at, np.zeros(self.lanes.count, np.int64))
        often[unknown] += 1
        # A loop would never end: after some rounds the lanes go the other way.
        way = np.asarray(self.choices.get(at, False) ^ (often > MOST_CHOSEN))
        if voted and (unknown & way).any():
            self.open.setdefault(-1 - at, span)
            if self.choices.get(-1 - at, False):
                way &= np.arange(self.lanes.count) % 2 == 1
        self.decided.decide(row, unknown & way, holds=True)
        self.decided.decide(row, unknown & ~way, holds=False)

    def settle_peeks(self, mask: Mask, waited: tuple[Word, Word] | None = None) -> None:
        """An operation of these lanes: after a poll whose answer was used it has to be the wait that it may save."""
        if not self.peeks:
            return
        for lane in np.flatnonzero(mask).tolist():
            expected = self.peeks.get(lane)
            if expected is None or expected[2] is None:
                continue
            if waited is not None and (int(waited[0][lane]), int(waited[1][lane])) == expected[:2]:
                del self.peeks[lane]
                continue
            self.trace.gap("the answer of a poll decides more than whether to wait", expected[2])
            del self.peeks[lane]

    # --- mbarriers -------------------------------------------------------------------------------------------

    def change(self, address: int, step: Callable[[mbarrier.State], mbarrier.Step]) -> None:
        """An operation on the object at an address; who waits for what it completes goes on."""
        state = self.mbarriers.get(address)
        if state is None:
            return
        try:
            after, completed = step(state)
        except Misuse:
            return  # the engine's to report
        self.mbarriers[address] = after
        if completed:
            self.wake(address)

    def wake(self, address: int) -> None:
        """Lets those go on whose phase is complete."""
        kept = []
        for mask, parity, phase in self.waiting.pop(address, []):
            if self.passed(address, parity, phase):
                self.status[mask] = RUN
            else:
                kept.append((mask, parity, phase))
        if kept:
            self.waiting[address] = kept

    def passed(self, address: int, parity: int | None, phase: int | None) -> bool:
        """Whether the phase of a parity, or of a number, is complete."""
        state = self.mbarriers.get(address)
        if state is None:
            return False
        if parity is not None:
            return parity in (0, 1) and mbarrier.wait_parity(state, parity)
        return phase is not None and state.phase > phase

    def wait(self, mask: Mask, address: int, parity: int | None, phase: int | None) -> Mask:
        """Of the lanes that wait for one phase, those that go on at once."""
        if self.passed(address, parity, phase):
            return mask
        self.status[mask] = WAITS
        self.waiting.setdefault(address, []).append((mask, parity, phase))
        self.waits[address] = self.span
        return np.zeros_like(mask)

    def send_on(self) -> None:
        """In the order that is followed nobody can go on. Another order may end the waits for mbarriers, and then this
        is what comes: whether there is one is the engine's to say.
        """
        self.trace.possible = False
        for address, found in self.waiting.items():
            self.trace.gap("this wait did not end in the order that was followed", self.waits[address])
            for mask, _, _ in found:
                self.status[mask] = RUN
        self.waiting.clear()

    # --- barriers --------------------------------------------------------------------------------------------

    def barrier(self, mask: Mask, cta: int, number: int, count: int | None, *, stands: bool) -> None:
        """Lanes of a CTA arrive at a barrier and, unless they only arrive, stand there; full, it lets all go on."""
        self.status[mask & stands] = STANDS
        self.barriers.setdefault((cta, number), []).append((mask, count, stands))
        self.fill(cta, number)

    def fill(self, cta: int, number: int) -> None:
        """Lets those at a barrier go on if all have come that it waits for."""
        found = self.barriers.get((cta, number))
        if not found:
            return
        come = np.logical_or.reduce([mask for mask, _, _ in found])
        count = next((c for _, c, _ in found if c is not None), None)
        mine = self.lanes.cta == cta
        if count is None:
            full = not (mine & ~come & (self.status != DONE)).any()
        else:
            rows = come.reshape(-1, WARP)
            whole = rows.any(axis=1) & ~(~rows & (self.status != DONE).reshape(-1, WARP)).any(axis=1)
            arrivals = sum(int((m.reshape(-1, WARP).any(axis=1) & whole).sum()) for m, _, _ in found)
            full = arrivals * WARP >= count
        if full:
            del self.barriers[cta, number]
            self._count_votes(self.votes.pop((cta, number), []))
            for mask, _, stands in found:
                if stands:
                    self.status[mask] = RUN

    def _count_votes(self, votes: list[Vote]) -> None:
        """``barrier.red``: the predicates of all that have come (9.7.13.1)."""
        yes = sum(int(((value != 0) & mask).sum()) for mask, value, _, _, _ in votes)
        everyone = sum(int(mask.sum()) for mask, _, _, _, _ in votes)
        sure = 0
        for mask, _, known, _, _ in votes:
            sure |= int(np.bitwise_or.reduce(known[mask]))
        for mask, _, _, rows, op in votes:
            result = yes if op == "popc" else int(yes == everyone) if op == "and" else int(yes > 0)
            for row in rows:
                self.lanes.values[row][mask] = result
                self.lanes.quality[row][mask] = sure

    def left(self, mask: Mask) -> None:
        """These lanes exit; what waited for them need not any more."""
        self.status[mask] = DONE
        for cta, number in list(self.barriers):
            self.fill(cta, number)
        self.fill_cluster()
        self.meet()

    def fill_cluster(self) -> None:
        """The barrier of the cluster."""
        if not self.arrived.any() or (~self.arrived & (self.status != DONE)).any():
            return
        waiting = self.status == ARRIVED
        self.status[waiting] = RUN
        self.standing |= self.arrived & ~waiting
        self.arrived[:] = False

    # --- warps -------------------------------------------------------------------------------------------------

    def gather(self, mask: Mask, members: Word, name: str, carry_out: Meeting) -> Mask | None:
        """Lanes come to where the lanes of their masks meet; ``carry_out`` is called for those whose mask is complete.

        Returns the lanes if all go on at once; else they are sent on when the others have come.
        """
        rows = mask.reshape(-1, WARP)
        alive = (self.status != DONE).reshape(-1, WARP)
        if not (self._wanted(mask, members) & alive & ~rows).any():
            carry_out(self, mask)
            return mask
        self.status[mask] = MEETS
        self.place[mask] = self.at + 1
        for warp in np.flatnonzero(rows.any(axis=1)).tolist():
            own = np.zeros_like(mask)
            own[warp * WARP : (warp + 1) * WARP] = rows[warp]
            for number in np.unique(members[own]).tolist():
                some = own & (members == number)
                self.meetings.setdefault((warp, f"{name} {number}"), []).append((some, int(number), carry_out))
        self.meet()
        return None

    def _wanted(self, mask: Mask, members: Word) -> Mask:
        rows = mask.reshape(-1, WARP)
        joined = np.bitwise_or.reduce(np.where(mask, members, np.uint64(0)).reshape(-1, WARP), axis=1)
        bits = joined[:, None] >> np.arange(WARP, dtype=np.uint64) & np.uint64(1)
        return np.asarray((bits != 0) & np.asarray(rows.any(axis=1))[:, None])

    def meet(self) -> None:
        """Carries out what all lanes of a mask have come to."""
        for key in list(self.meetings):
            found = self.meetings[key]
            come = np.logical_or.reduce([mask for mask, _, _ in found])
            wanted = np.zeros_like(come)
            first = key[0] * WARP
            wanted[first : first + WARP] = [bool(found[0][1] >> k & 1) for k in range(WARP)]
            if (wanted & ~come & (self.status != DONE)).any():
                continue
            del self.meetings[key]
            alike: dict[Meeting, Mask] = {}
            for mask, _, carry_out in found:
                alike[carry_out] = alike.get(carry_out, np.zeros_like(come)) | mask
            if len(alike) > 1 and not key[1].startswith("sync"):
                self.trace.gap("lanes of a warp meet at different instructions", self.span)
            for carry_out, mask in alike.items():
                carry_out(self, mask)
            self.status[come] = RUN
