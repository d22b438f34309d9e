"""SIMT execution of a cluster: all lanes at one place of the code execute together.

Of the runnable lanes, those at the lowest place run, up to the next label, branch or wait. So diverged lanes reconverge
where the code does; nothing else depends on that. What one thread learns from another is followed in this one order;
where control depends on it, the taint says so (``mcheck.frontend.ptx.taint``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcheck.base.budget import TimeOut
from mcheck.base.errors import InputError, Span
from mcheck.base.progress import Level, note
from mcheck.base.records import dataclass
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.frontend.ptx.memory_layout import UNKNOWN_GLOBAL, UNKNOWN_GLOBAL_SIZE, MemoryLayout
from mcheck.frontend.ptx.module import Guard, Statement
from mcheck.semantics import mbarrier
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.async_registers import AsyncWrites
from mcheck.simt.execution.cta_pairs import PairMeetings, missing_peer
from mcheck.simt.execution.forced_values import ForcedValues
from mcheck.simt.execution.lanes import WARP, Lanes, Mask, Quality
from mcheck.simt.execution.launch_answers import CancelResponses
from mcheck.simt.execution.memory import Store
from mcheck.simt.execution.path_condition import PathCondition
from mcheck.simt.execution.recorded_operations import RecordedOperations
from mcheck.simt.execution.strong_writes import StrongWrites
from mcheck.simt.execution.tensor_memory import TensorMemory
from mcheck.simt.execution.waits.assumed_failures import POLL_DECIDES, AssumedFailures
from mcheck.simt.execution.waits.counters import Counters
from mcheck.simt.execution.waits.deferred_swaps import DeferredSwaps, ExpectedWord
from mcheck.simt.execution.waits.mbarrier_waits import MbarrierWaits, PhaseWait
from mcheck.simt.execution.waits.meetings import Meetings
from mcheck.simt.execution.waits.poll_progress import MAX_IDLE_POLLS, PollProgress
from mcheck.simt.execution.waits.two_valued_locks import TwoValuedLock
from mcheck.simt.execution.warp_convergence import Convergence

RUNNABLE, EXITED, AT_MBARRIER, AT_WARP, AT_BARRIER, AT_CLUSTER_BARRIER, DEFERRED, AT_PEER = range(8)
"""The status of a lane: runnable; exited; waiting for an mbarrier, for lanes of its warp, at a barrier, for the cluster
barrier; deferred until other lanes have run; waiting for the peer CTA.
"""

MAX_ITERATIONS = 20_000
"""Maximum iterations of a loop without an observable operation."""
YIELD_AFTER = 64
"""Iterations after which other lanes run first."""
STARVED_AFTER = 2_000
"""Steps of others after which a lane that is ready runs first."""
NOTED_STEPS = 4_096
"""Steps after which it is noted how far the lanes have come."""
MAX_STEPS = 6_000_000

Vote = tuple[Mask, Word, Quality, list[int], str]
"""The contribution of lanes to a ``barrier.red``: predicates, their quality, the rows of the result, the operation."""
ReturnTo = tuple[int, Callable[["Cluster", Mask], None]]
"""Where a call continues when its function returns, and what copies its results there."""
WarpAction = Callable[["Cluster", Mask], None]
"""The action that converged lanes of a warp carry out together."""
Step = Callable[["Cluster", Mask], "Mask | None"]
"""Executes an instruction for the lanes of the mask; returns those that continue at the next one, or ``None`` if the
step has set where each of them continues.
"""


class MissingParameter(InputError):
    """The execution needs a parameter that the launch does not give."""


MAX_CHOICES = 32
"""How often a lane takes the chosen way of a branch on unknown data."""
UNKNOWN_STRIDE = 1 << 18
"""More bytes than a copy moves: shared memory is smaller."""


@dataclass(slots=True)
class Cluster:
    """The state of the execution. ``pc`` is the place of each lane in the code, ``returns`` its call stack."""

    lanes: Lanes
    places: MemoryLayout
    store: Store
    recorded: RecordedOperations
    steps: list[Step]
    heads: frozenset[int]
    choices: dict[int, bool]
    path_condition: PathCondition
    pc: NDArray[np.int64] = field(init=False)
    status: NDArray[np.int8] = field(init=False)
    iterations: NDArray[np.int64] = field(init=False)
    served: NDArray[np.int64] = field(init=False)
    """The step at which each lane has run last."""
    return_stacks: list[list[ReturnTo]] = field(init=False)
    current_pc: int = 0
    span: Span | None = None
    """The source location of the current instruction."""
    mbarriers: MbarrierWaits = field(default_factory=MbarrierWaits)
    barrier_arrivals: dict[tuple[int, int], list[tuple[Mask, int | None, bool]]] = field(default_factory=dict)
    """By CTA and barrier, who has arrived, with the thread count and whether they block there."""
    standing: Mask = field(init=False)
    arrived: Mask = field(init=False)
    chosen_spans: dict[int, Span] = field(default_factory=dict)
    """Places whose way is unknown and was chosen; ``-1 - k`` is for whether a vote at place ``k`` is unanimous."""
    choice_counts: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    """By such a place, how often each lane has taken the chosen way."""
    tokens: list[int] = field(default_factory=list)
    """By state token, the phase of the arrive that returned it."""
    warp_actions: dict[tuple[int, str], list[tuple[Mask, int, WarpAction]]] = field(default_factory=dict)
    met: Mask | None = None
    """The lanes that have met where their warp action is carried out, if some of them are at other instructions."""
    votes: dict[tuple[int, int], list[Vote]] = field(default_factory=dict)
    cancel_responses: CancelResponses = field(default_factory=CancelResponses)
    tensor: TensorMemory = field(default_factory=TensorMemory)
    pairs: PairMeetings = field(default_factory=PairMeetings)
    counters: Counters = field(default_factory=Counters)
    convergence: Convergence = field(init=False)
    async_writes: AsyncWrites = field(init=False)
    effect_count: int = 0
    """Number of observable operations so far."""
    polls: PollProgress = field(init=False)
    lock_requests: set[int] = field(default_factory=set)
    """Lanes that have requested a lock and do not hold it yet."""
    follows_two_valued_locks: bool = False
    """Whether swaps that are repeated until they take a lock count as one, if it holds two values."""
    two_valued_locks: dict[int, TwoValuedLock] = field(default_factory=dict)
    """The locks that are taken so, by address."""
    two_valued_locks_hold: bool = True
    """Whether these are locks, as far as is known."""
    follows_load_loops: bool = False
    """Whether loops that repeat several loads are recorded as loops."""
    follows_copied_values: bool = False
    """Whether what asynchronous copies leave is known where what they read is."""
    copy_varies: bool = False
    """Whether the copy that is executed now may leave something else in other clusters."""
    looping: dict[int, Any] = field(default_factory=dict)
    """The lanes in such loops (``mcheck.simt.instructions.looping_loads.LoopingLane``)."""
    strong_writes: StrongWrites = field(default_factory=StrongWrites)
    lock_taken: bool = False
    """Whether a thread has taken a lock that others may have been waiting for and could have had first."""
    swaps: DeferredSwaps = field(default_factory=DeferredSwaps)
    forced: ForcedValues = field(default_factory=ForcedValues)
    meetings: Meetings = field(default_factory=Meetings)
    step_count: int = 0
    max_steps: int = MAX_STEPS
    path_choices: Any = None
    """The choices of the path."""
    last_lane_leads: bool = False
    """Whether ``elect.sync`` elects the highest lane, not the lowest."""
    has_elected: bool = False
    """Whether ``elect.sync`` had a choice."""
    explain_missing: Callable[[Statement], str] = lambda _: ""
    loop_rounds: Any = None
    """What leaves rounds of loops out (``mcheck.simt.rounds.loop_rounds.LoopRounds``), if that is wanted."""
    unknown_copies: int = 0
    """Number of copies so far with an unknown address in global memory."""

    def __post_init__(self) -> None:
        count = self.lanes.count
        self.pc = np.zeros(count, np.int64)
        self.status = np.where(self.lanes.exists, RUNNABLE, EXITED).astype(np.int8)
        self.iterations = np.zeros(count, np.int64)
        self.served = np.zeros(count, np.int64)
        self.polls = PollProgress(count)
        self.convergence = Convergence(self.lanes.exists)
        self.async_writes = AsyncWrites(count)
        self.return_stacks = [[] for _ in range(count)]
        self.standing = np.zeros(count, np.bool_)
        self.arrived = np.zeros(count, np.bool_)

    # --- the run ---------------------------------------------------------------------------------------------

    def unknown_addresses(self, side: str, count: int) -> NDArray[np.uint64]:
        """Stand-in addresses for the ends of copies whose global address is unknown: a source that nothing else
        touches, and a destination of its own for each copy.
        """
        base = self.places.symbols["", UNKNOWN_GLOBAL]
        if side == "src":
            return np.full(count, base, np.uint64)
        numbers = np.arange(self.unknown_copies, self.unknown_copies + count, dtype=np.uint64) % np.uint64(
            UNKNOWN_GLOBAL_SIZE // UNKNOWN_STRIDE - 1
        )
        self.unknown_copies += count
        return np.uint64(base) + (numbers + np.uint64(1)) * np.uint64(UNKNOWN_STRIDE)

    def run(self, deadline: Callable[[], None]) -> None:
        """Run all lanes until they exit or none can continue."""
        count = told = 0
        while True:
            if self.swaps.deferred:
                self._resume_swaps()
            if self.forced.held:
                self._resume_held()
            ready = self.status == RUNNABLE
            if not ready.any():
                if self.pairs.waiting:
                    self.leave_peers_behind()
                elif self.mbarriers.waiting:
                    self.resume_blocked()
                else:
                    return
                continue
            endless = ready & (self.polls.idle > MAX_IDLE_POLLS)
            if endless.any() and self.swaps.deferred:
                self.status[self.swaps.force()] = RUNNABLE
                self.polls.idle[endless] = 0
                continue
            if endless.any():
                self.give_up(endless, f"polled {MAX_IDLE_POLLS} times without progress")
                continue
            self._let_others_go(ready)
            turns = np.where(ready, self.iterations // YIELD_AFTER + self.polls.idle, np.iinfo(np.int64).max)
            first = ready & (turns == turns.min())
            self.current_pc = at = int(self.pc[first].min())
            mask: Mask | None = first & (self.pc == at)
            self.served[mask] = count
            steps, heads = self.steps, self.heads
            try:
                while True:
                    assert mask is not None
                    mask = steps[at](self, mask)
                    count += 1
                    deadline()
                    if mask is None:
                        break
                    self.current_pc = at = at + 1
                    if at in heads:
                        self.pc[mask] = at
                        break
            except TimeOut:
                raise TimeOut(self.describe_progress()) from None
            if count >= told:
                told = count + NOTED_STEPS
                note(Level.LOOP, self.describe_progress())
            if count > self.max_steps:
                self.recorded.note_gap(f"the kernel takes more than {self.max_steps} steps", None, nothing_known=True)
                return
            self.step_count = count

    def _let_others_go(self, ready: Mask) -> None:
        """Let lanes go first that are ready and have not run for long: others may repeat a loop that has effects until
        these have done something.
        """
        late = ready & (self.served < self.step_count - STARVED_AFTER)
        if late.any() and (others := ready & ~late).any():
            self.iterations[others] += YIELD_AFTER
            self.served[late] = self.step_count

    def describe_progress(self) -> str:
        """How far the lanes have come, for the message of a timeout."""
        rounds = int(self.iterations.max(initial=0))
        where = f" near line {self.span.line}" if self.span is not None else ""
        return f"a lane is in iteration {rounds} of its loops{where}" if rounds else ""

    def jump(self, mask: Mask, target: int) -> None:
        """Jump to a place; a backward jump counts as an iteration."""
        if target <= self.current_pc:
            self.iterations[mask] += 1
            endless = mask & (self.iterations > MAX_ITERATIONS)
            if endless.any():
                self.give_up(endless, f"a loop does not end within {MAX_ITERATIONS} iterations")
                mask = mask & ~endless
        self.pc[mask] = target
        if target <= self.current_pc and self.loop_rounds is not None:
            self.loop_rounds.visit(self, mask, target, self.current_pc)

    # --- waits that a barrier decides ------------------------------------------------------------------------

    def confirm_meetings(self, lanes: Mask, shuffle: int | None = None) -> None:
        """Check what the waits of these lanes assume of the other threads, which stand at the barrier now, or have come
        to a ``shuffle``.
        """
        for lane in [lane for lane in self.meetings.waiting if lanes[lane]]:
            place, comes_back, of_warp, _ = self.meetings.waiting.pop(lane)
            others = (self.lanes.cta == self.lanes.cta[lane]) & (self.status != EXITED)
            if of_warp:
                others &= np.arange(len(others)) // WARP == lane // WARP
            others[lane] = False
            waiting = ((self.status == AT_BARRIER) | (self.status == AT_WARP)) & (self.pc == place + 1)
            there = lanes if shuffle == place else waiting & (shuffle is None)
            met = self.status[lane] != EXITED and there[others].all()  # a lane that has exited since has met nobody
            if not met or not comes_back(self.meetings, self.recorded.code, others):
                self.meetings.hold = False
                said = "what other threads bring to the barrier of this loop is not known in every round"
                self.recorded.note_gap(said, self.span, nothing_known=True)

    def note_two_valued_lock(self, address: int, lock: TwoValuedLock) -> None:
        """Record that lanes try to take a lock until they find it free."""
        self.two_valued_locks_hold &= self.two_valued_locks.setdefault(address, lock) == lock

    def give_up(self, mask: Mask, reason: str) -> None:
        """Stop following these lanes: what they do from here on is unknown."""
        self.recorded.note_gap(reason, self.span, nothing_known=True)
        self.recorded.lose_lanes(np.flatnonzero(mask), reason, self.span)
        self.status[mask] = EXITED

    def assume(self, said: str) -> None:
        """Record an assumption of the answer."""
        self.recorded.assumptions[said] = None

    def note_effect(self, mask: Mask) -> None:
        """Record an observable operation of these lanes."""
        self.iterations[mask] = 0
        self.effect_count += 1

    def note_failed_polls(self, lanes: NDArray[np.int64]) -> None:
        """Record polls for a value that is not there yet; without other progress for long, the lanes block."""
        if not len(lanes) or not self.polls.note_failed(lanes, self.effect_count, self.status == RUNNABLE):
            return
        if self.swaps.deferred:
            self.status[self.swaps.force()] = RUNNABLE
            self.polls.restart(self.effect_count)
        else:
            self.status[lanes] = AT_MBARRIER

    def defer_swap(self, lane: int, address: int, size: int, expected: int, *, taken: bool) -> bool:
        """Whether a swap is deferred because the word holds another value, or is ``taken`` just now, and others may
        change that.
        """
        word = address, size, expected
        if self.swaps.may_run(lane, word, succeeds=not taken and self._word_holds(lane, word)):
            return False
        self.status[lane], self.pc[lane] = DEFERRED, self.current_pc
        return True

    def _resume_swaps(self) -> None:
        """Resume the deferred lanes whose word holds the expected value; all of them if no other lane can run."""
        self.status[self.swaps.resume(self._word_holds)] = RUNNABLE
        if self.swaps.deferred and not (self.status == RUNNABLE).any():
            self.status[self.swaps.force()] = RUNNABLE

    def _word_holds(self, lane: int, expected: ExpectedWord) -> bool:
        address, size, value = expected
        word, known = self.store.load(np.array([address], np.uint64), size, np.array([lane]))
        return bool(known[0]) or (int(word[0]) - value) % (1 << 8 * size) == 0

    # --- values that a path forces -------------------------------------------------------------------------------

    def hold_back(self, mask: Mask, address: Word, size: int, *, writes: bool) -> Mask:
        """The lanes that may access their words now; the others are held back (``ForcedValues``). ``address`` has an
        entry for each lane of the mask.
        """
        lanes = np.flatnonzero(mask)
        word, _ = self.store.load(address, size, lanes)
        out = mask.copy()
        for lane, where, present in zip(lanes.tolist(), address.tolist(), word.tolist(), strict=True):
            if not self.forced.may_run(lane, len(self.recorded.code[lane]), where, size, present, writes=writes):
                out[lane] = False
                self.status[lane], self.pc[lane] = DEFERRED, self.current_pc
        return out

    def take_forced(self, lanes: NDArray[np.int64], value: Word) -> Word:
        """The values that the latest loads of these lanes return: those that are forced, else those given."""
        out = value.copy()
        for j, lane in enumerate(lanes.tolist()):
            forced = self.forced.take(lane, len(self.recorded.code[lane]) - 1)
            if forced is not None:
                out[j] = forced
        return out

    def _resume_held(self) -> None:
        """Resume the lanes whose words hold what they wait for; all of them if no other lane can run."""
        present = {
            lane: int(self.store.load(np.array([address], np.uint64), size, np.array([lane]))[0][0])
            for lane, (address, size, _) in self.forced.held.items()
        }
        ready = self.forced.ready_lanes(present)
        if not ready and not (self.status == RUNNABLE).any():
            ready = list(self.forced.held)
            self.forced.release(ready)
        self.forced.forget(ready)
        self.status[ready] = RUNNABLE

    # --- control -----------------------------------------------------------------------------------------------

    def evaluate_guard(self, guard: Guard, row: int, mask: Mask, statement: Statement) -> Mask:
        """The lanes for which the guard holds; one way is chosen where it is unknown."""
        value = self.lanes.values[row] != 0
        known = self.lanes.quality[row]
        doubt = known[mask]
        if doubt.any():
            value = self._evaluate_unknown(value, known, mask, statement, row)
        return np.asarray(mask & ~value if guard.negated else mask & value)

    def _evaluate_unknown(self, value: Mask, known: Quality, mask: Mask, statement: Statement, row: int) -> Mask:
        if self.note_control(known, mask, statement) & taint.UNKNOWN:
            self.choose_predicate(row, mask, self.current_pc, statement.span)
            value = self.lanes.values[row] != 0
        return value

    def note_control(self, known: Quality, mask: Mask, statement: Statement) -> int:
        """Record that control of these lanes depends on a value; returns all bits of its quality."""
        bits = int(np.bitwise_or.reduce(known[mask]))
        if bits & taint.MISSING:
            raise MissingParameter(
                f"'{statement.text}' branches on a parameter that the launch does not give",
                statement.span, hint=self.explain_missing(statement),
            )  # fmt: skip
        if bits & (taint.ORDER | taint.CONVERGED | taint.TOKEN) and not bits & taint.UNKNOWN:
            why = "what was read from other threads" if bits & taint.ORDER else "which lanes converge"
            self.recorded.note_order_dependence(f"control depends on {why}", statement.span)
        if bits & taint.POLL:
            for reason in self.assumed_failures.use(mask, known, statement.span):
                self.recorded.note_gap(reason, statement.span)
        return bits

    def choose_predicate(self, row: int, mask: Mask, at: int, span: Span, *, voted: bool = False) -> None:
        """Choose the value of a predicate in the lanes where it is unknown, at a place in the code: the same for all of
        them, or for every other one, where it is ``voted`` upon.
        """
        unknown = self.path_condition.propagate(row, mask)
        if not unknown.any():
            return
        self.chosen_spans.setdefault(at, span)
        often = self.choice_counts.setdefault(at, np.zeros(self.lanes.count, np.int64))
        often[unknown] += 1
        # The loop would never end: after some iterations the lanes take the other way.
        way = np.asarray(self.choices.get(at, False) ^ (often > MAX_CHOICES))
        if voted and (unknown & way).any():
            self.chosen_spans.setdefault(-1 - at, span)
            if self.choices.get(-1 - at, False):
                way &= np.arange(self.lanes.count) % 2 == 1
        self.path_condition.choose(row, unknown & way, holds=True)
        self.path_condition.choose(row, unknown & ~way, holds=False)

    @property
    def assumed_failures(self) -> AssumedFailures:
        """The polls that are assumed to fail."""
        return self.recorded.polls

    def check_assumed_failures(self, mask: Mask) -> None:
        """Check that no answer of a poll has decided about an operation of these lanes."""
        for span in self.assumed_failures.check(mask):
            self.recorded.note_gap(POLL_DECIDES, span)

    # --- mbarriers -------------------------------------------------------------------------------------------

    def apply_to_mbarrier(self, address: int, step: Callable[[mbarrier.State], mbarrier.Step]) -> None:
        """Apply an operation to the mbarrier at an address and resume the waiters of a phase that it completes."""
        for mask in self.mbarriers.apply(address, step):
            self.status[mask] = RUNNABLE

    def wait_for_phase(self, mask: Mask, address: int, parity: int | None, phase: int | None) -> Mask:
        """Block lanes until a phase completes; returns those that continue at once."""
        if not self.mbarriers.blocks(address, PhaseWait(mask, parity, phase), self.span):
            return mask
        self.status[mask] = AT_MBARRIER
        return np.zeros_like(mask)

    def resume_blocked(self) -> None:
        """Resume all lanes blocked at mbarriers: no lane can run in this order. Another order may end the waits, and
        then this is what follows; whether there is one is for the engine to decide.
        """
        self.recorded.order_is_possible = False
        for span, waits in self.mbarriers.give_up():
            self.recorded.note_gap("this wait did not end in the order that was followed", span)
            for wait in waits:
                self.status[wait.lanes] = RUNNABLE

    # --- pairs of CTAs ---------------------------------------------------------------------------------------

    def leave_peers_behind(self) -> None:
        """Resume the lanes that wait for a peer CTA, since no lane can run: if all others have exited, or wait at
        barriers, they would wait forever.
        """
        sure = self.recorded.order_is_possible and not self.mbarriers.waiting and not self.swaps.happened
        for one in self.pairs.waiting:
            span, what = one.statement.span, one.statement.opcode.mode
            if sure:
                self.recorded.append(missing_peer(one.statement), np.flatnonzero(one.mask)[:1])
            else:
                said = f"whether the peer CTA executes its tcgen05.{what} is not known in every order"
                self.recorded.note_gap(said, span)
            self.status[one.mask] = RUNNABLE
        self.pairs.waiting.clear()

    # --- barriers --------------------------------------------------------------------------------------------

    def arrive_at_barrier(self, mask: Mask, cta: int, number: int, count: int | None, *, stands: bool) -> None:
        """Arrive at a barrier of a CTA and, if ``stands``, block there until it is complete."""
        self.status[mask & stands] = AT_BARRIER
        self.barrier_arrivals.setdefault((cta, number), []).append((mask, count, stands))
        self.complete_barrier(cta, number)

    def complete_barrier(self, cta: int, number: int) -> None:
        """Complete a barrier if all expected lanes have arrived."""
        found = self.barrier_arrivals.get((cta, number))
        if not found:
            return
        come = np.logical_or.reduce([mask for mask, _, _ in found])
        count = next((c for _, c, _ in found if c is not None), None)
        mine = self.lanes.cta == cta
        if count is None:
            full = not (mine & ~come & (self.status != EXITED)).any()
        else:
            rows = come.reshape(-1, WARP)
            whole = rows.any(axis=1) & ~(~rows & (self.status != EXITED).reshape(-1, WARP)).any(axis=1)
            arrivals = sum(int((m.reshape(-1, WARP).any(axis=1) & whole).sum()) for m, _, _ in found)
            full = arrivals * WARP >= count
        if full:
            del self.barrier_arrivals[cta, number]
            self.confirm_meetings(come)
            self._count_votes(self.votes.pop((cta, number), []))
            stood = np.zeros_like(come)
            for mask, _, stands in found:
                if stands:
                    stood |= mask
            self.status[stood] = RUNNABLE
            self.strong_writes.add_barrier(stood)

    def _count_votes(self, votes: list[Vote]) -> None:
        """``barrier.red``: reduce the predicates of all lanes that arrived (9.7.13.1)."""
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

    def exit_lanes(self, mask: Mask) -> None:
        """Exit lanes; barriers no longer wait for them."""
        self.status[mask] = EXITED
        for cta, number in list(self.barrier_arrivals):
            self.complete_barrier(cta, number)
        self.complete_cluster_barrier()
        self.run_warp_actions()

    def complete_cluster_barrier(self) -> None:
        """Complete the barrier of each cluster of which all lanes have arrived."""
        for cluster in distinct(self.lanes.cluster[self.arrived]):
            mine = self.lanes.cluster == cluster
            if (mine & ~self.arrived & (self.status != EXITED)).any():
                continue
            waiting = mine & (self.status == AT_CLUSTER_BARRIER)
            self.status[waiting] = RUNNABLE
            self.strong_writes.add_cluster_barrier(mine, waiting)
            self.standing |= mine & self.arrived & ~waiting
            self.arrived[mine] = False

    # --- warps -------------------------------------------------------------------------------------------------

    def converge(self, mask: Mask, members: Word, name: str, carry_out: WarpAction) -> Mask | None:
        """Wait for the lanes of a member mask to converge; ``carry_out`` is called for masks that are complete.

        Returns the lanes if all continue at once; otherwise they resume when the others have come.
        """
        rows = mask.reshape(-1, WARP)
        alive = (self.status != EXITED).reshape(-1, WARP)
        if not (self._members_of(mask, members) & alive & ~rows).any():
            carry_out(self, mask)
            return mask
        self.status[mask] = AT_WARP
        self.pc[mask] = self.current_pc + 1
        for warp in np.flatnonzero(rows.any(axis=1)).tolist():
            own = np.zeros_like(mask)
            own[warp * WARP : (warp + 1) * WARP] = rows[warp]
            for number in distinct(members[own]).tolist():
                some = own & (members == number)
                self.warp_actions.setdefault((warp, f"{name} {number}"), []).append((some, int(number), carry_out))
        self.run_warp_actions()
        return None

    def _members_of(self, mask: Mask, members: Word) -> Mask:
        rows = mask.reshape(-1, WARP)
        joined = np.bitwise_or.reduce(np.where(mask, members, np.uint64(0)).reshape(-1, WARP), axis=1)
        bits = joined[:, None] >> np.arange(WARP, dtype=np.uint64) & np.uint64(1)
        return np.asarray((bits != 0) & np.asarray(rows.any(axis=1))[:, None])

    def run_warp_actions(self) -> None:
        """Carry out the actions whose member masks are complete."""
        for key in list(self.warp_actions):
            found = self.warp_actions[key]
            come = np.logical_or.reduce([mask for mask, _, _ in found])
            wanted = np.zeros_like(come)
            first = key[0] * WARP
            wanted[first : first + WARP] = [bool(found[0][1] >> k & 1) for k in range(WARP)]
            if (wanted & ~come & (self.status != EXITED)).any():
                continue
            del self.warp_actions[key]
            alike: dict[WarpAction, Mask] = {}
            for mask, _, carry_out in found:
                alike[carry_out] = alike.get(carry_out, np.zeros_like(come)) | mask
            if len(alike) > 1 and not key[1].startswith("sync"):
                self.recorded.note_gap("lanes of a warp synchronise at different instructions", self.span)
            self.met = come
            for carry_out, mask in alike.items():
                carry_out(self, mask)
            self.met = None
            self.status[come] = RUNNABLE
