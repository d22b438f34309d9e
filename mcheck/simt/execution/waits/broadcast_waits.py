"""Waits of one thread that hands what it has read to others: through a word of shared memory, or a shuffle.

    do {
      __syncthreads();
      if (threadIdx.x == 0) word = atomicCAS(lock, 0, 1);     // the look, and the word that hands it on
      __syncthreads();                                        // the meeting
    } while (word == 1);

So Triton compiles every loop around a scalar atomic; with one warp a ``shfl.sync.idx`` takes the place of the word and
is the meeting. One round, the last, stands for any number of them, if these hold:

* one thread looks, and a failed look has no effect (``mcheck.simt.execution.waits.polling_loops``). It writes what it
  has read, or the result of a comparison of it, to one word, once in each round, weakly, or hands it out by one
  shuffle;
* between that and a barrier of the whole CTA, the meeting, nobody reads the word; behind it only weak loads of the
  whole word do, and behind the last of them comes another barrier of the whole CTA before the word is written again;
* all threads of the CTA that have not exited stand at the meeting. With each value that fails they all come back to it
  through the same barriers in the same order, and do nothing else but compute and read the word. If it is the value
  that was read, each compares it once, as the thread that looks does, and with the same, and uses it for nothing else.
  A shuffle is one of the whole warp; if there is a barrier in the round, the CTA has no other warp there, and without
  one other warps may be elsewhere;
* what failed rounds leave in registers decides nothing afterwards, in any of these threads;
* nobody else touches the word: no thread that has exited, no other CTA, no asynchronous copy (``foreign_access``);
* none of the other threads touches it between the last barrier of the whole CTA before the meeting and the meeting: the
  first round writes it there (``touches_before_meeting``).

A barrier waits for all threads of the CTA, and orders what is before it in each of them before what is behind it in
each (PTX ISA 9.7.13.1). So in each round all threads read what was written in it, and all go the same way. The accesses
of the word in a failed round are ordered, by the barriers around them, with all other accesses that those threads make,
and others make none: they race with nothing (8.10.1). Before the first meeting the order has to come from a barrier:
the first look, which fails, is not ordered behind what ends the wait, and a thread may write the word before it ends
the wait. ``shfl.sync`` hands each lane the value of the one that looks (9.7.9.6). Whoever leaves a failed round out
leaves out no write that anybody else reads, and orders that other rounds bring about as well. So no execution is lost,
and none is added: the first look may be the one that succeeds.

The value that has ended the wait is followed as one of those that may. So nothing else may depend on it: what threads
read of the word is compared once (``Meetings.receives``), and control that depends on another load of it leaves a gap.

``find_broadcast`` decides what concerns the thread that looks, ``find_reader`` what concerns the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.instruction_forms import find_fault
from mcheck.frontend.ptx.lane_arithmetic import type_bits
from mcheck.frontend.ptx.module import operand_registers
from mcheck.ir import ops
from mcheck.ir.def_use import numbers_in, registers_in
from mcheck.ir.memory import SHARED_BASE, SHARED_WINDOW
from mcheck.ir.ops import Op, performed_operation
from mcheck.ir.spin_loops import Step
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.execution.register_reads import may_change, reads_only_at
from mcheck.simt.execution.waits.barrier_waits import follow_failures
from mcheck.simt.execution.waits.polling_loops import LOOKAHEAD, Known, PollingLoop, guard_holds, known_value
from mcheck.simt.execution.waits.value_tests import AwaitedValue, ValueTest, read_test

WORD = -1
"""Stands for the word among the registers that are known."""
FULL = 0xFFFFFFFF
LARGEST = 32
"""Bytes of the largest access by one address (PTX ISA 9.7.9.8)."""
WRITES, READS, SHUFFLES, BARRIER, WARP_BARRIER = range(5)


class Event(NamedTuple):
    """What a thread does in a round besides computing. ``where`` and ``size`` are those of the word; of a shuffle, the
    lane whose value it hands out.
    """

    what: int
    place: int
    where: int = 0
    size: int = 0


Events = tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Broadcast:
    """A look that is repeated until its value satisfies ``wait``, and how it is handed on.

    ``word`` is (address, size), ``None`` for a shuffle. ``barriers`` are the places of those behind the meeting until
    the next one. All values in ``fails`` fail, and all in ``ends`` do not, of those that are handed on; if these are
    what was read, ``tested`` says that a reader compares them so.
    """

    wait: AwaitedValue
    meeting: int
    write: int
    read: int
    word: tuple[int, int] | None
    barriers: tuple[int, ...]
    fails: tuple[int, ...]
    ends: tuple[int, ...]
    tested: bool
    has_barrier: bool
    """Whether the whole CTA takes part."""


class BroadcastLoop(PollingLoop):
    """The loop around a look, or around the meeting of those who wait for its outcome. ``symbols`` are the addresses of
    names, as the thread sees them.
    """

    def __init__(self, function: ptx.Function, at: int, symbols: Mapping[str, int]) -> None:
        super().__init__(function, at)
        self.symbols = symbols
        self.events: list[Event] = []
        self.rounds: set[Events] = set()
        """What was done in the rounds that were followed."""
        if self.poll.guard is not None:
            self._operands |= {self.poll.guard.register.index}
            self.asked = self._operands

    def returns(self, known: Known) -> bool:
        """Whether a look after which these registers are ``known`` is repeated, on the one way that they lead."""
        self.events = []
        found = super().returns(known)
        self.rounds.add(tuple(self.events))
        return found

    def step(self, place: int, known: Known) -> Step[int] | None:
        """A step of a failed round (``mcheck.ir.spin_loops.Body``)."""
        if place >= len(self.function.body):
            return None
        statement = self.function.body[place]
        if find_fault(statement) is not None or statement.kind is Kind.MBARRIER_WAIT:
            return None
        holds = guard_holds(statement.guard, known)
        if not statement.only_computes and statement.kind is not Kind.BRANCH:
            if holds is None:
                return None
            if not holds:
                return Step((place + 1,))
            passed = self._take_part(statement, place, known)
            if passed is not None:
                return Step((place + 1,), passed)
        step = super().step(place, known)
        if step is None or len(step.following) != 1:
            return None
        if statement.kind is Kind.MOVE and holds and isinstance(symbol := statement.operands[1], ptx.Symbol):
            (target,) = statement.defs
            if symbol.name in self.symbols:
                size = type_bits(statement.opcode.type)
                known[target.index] = self.symbols[symbol.name] + symbol.offset & (1 << size) - 1
        return step

    def _take_part(self, statement: ptx.Statement, place: int, known: Known) -> frozenset[int] | None:
        """The registers that are written by a step that hands on, or waits; ``None`` if it is another."""
        match statement.kind:
            case Kind.BARRIER if len(statement.operands) == 1 and isinstance(statement.operands[0], ptx.Immediate):
                self.events.append(Event(BARRIER, place))
                return frozenset()
            case Kind.WARP_BARRIER if _is_full(statement.operands[-1]):
                self.events.append(Event(WARP_BARRIER, place))
                return frozenset()
            case Kind.STORE | Kind.LOAD if (word := self._find_word(statement, known)) is not None:
                register = statement.operands[1 if statement.kind is Kind.STORE else 0]
                assert isinstance(register, ptx.Register)
                if statement.kind is Kind.STORE:
                    self.events.append(Event(WRITES, place, *word))
                    _assign(known, WORD, known.get(register.index))
                    return frozenset()
                self.events.append(Event(READS, place, *word))
                _assign(known, register.index, known.get(WORD))
                return frozenset((register.index,))
            case Kind.SHUFFLE if (lane := read_shuffle(statement, known)) is not None:
                target, source = statement.operands[:2]
                assert isinstance(target, ptx.Register)
                self.events.append(Event(SHUFFLES, place, lane))
                _assign(known, target.index, known_value(source, known))
                return frozenset((target.index,))
        return None

    def _find_word(self, statement: ptx.Statement, known: Known) -> tuple[int, int] | None:
        """The address and the size of a weak access of shared memory that moves one register."""
        opcode, place = statement.opcode, statement.address
        register = statement.operands[1 if statement.kind is Kind.STORE else 0]
        size = type_size(opcode.type)
        plain = opcode.space == "shared" and not opcode.is_strong and opcode.vector == 1
        if not plain or size > 8 or place is None or not isinstance(register, ptx.Register):
            return None
        base = place.base
        if isinstance(base, ptx.Symbol):
            found = self.symbols.get(base.name)
            address = None if found is None else found + base.offset + place.offset
        elif isinstance(base, ptx.Register):
            found = known.get(base.index)
            address = None if found is None else found + place.offset & (1 << type_bits(base.type)) - 1
        else:
            address = place.offset
        return None if address is None else (address, size)

    def first_use(self, register: ptx.Register, place: int, known: Known) -> int | None:
        """Where the way from a place comes to a statement that reads a register."""
        return self._follow_until(place, known, lambda k: register in self.function.body[k].uses)

    def first_read(self, place: int, known: Known) -> int | None:
        """Where the way from a place comes to a load that may be one of the word."""
        body = self.function.body
        return self._follow_until(
            place, known, lambda k: body[k].kind is Kind.LOAD and guard_holds(body[k].guard, known) is True
        )

    def _follow_until(self, place: int, known: Known, ends: Callable[[int], bool]) -> int | None:
        for _ in range(LOOKAHEAD):
            if place >= len(self.function.body) or place == self.at:
                return None
            if ends(place):
                return place
            step = self.step(place, known)
            if step is None:
                return None
            (place,) = step.following
        return None


def _assign(known: Known, register: int, value: int | None) -> None:
    known.pop(register, None)
    if value is not None:
        known[register] = value


def _is_full(mask: ptx.Operand) -> bool:
    return isinstance(mask, ptx.Immediate) and mask.value & FULL == FULL


def read_shuffle(statement: ptx.Statement, known: Known) -> int | None:
    """The one lane whose value a shuffle of the whole warp hands to all."""
    if statement.opcode.mode != "sync" or not statement.opcode.has("idx") or not _is_full(statement.operands[-1]):
        return None
    lane, clamp = (known_value(o, known) for o in statement.operands[2:4])
    if lane is None or clamp != WARP - 1 or not isinstance(statement.operands[0], ptx.Register):
        return None
    return lane % WARP


# --- the thread that looks --------------------------------------------------------------------------------------------


def find_broadcast(
    function: ptx.Function, at: int, known: Mapping[int, int], symbols: Mapping[str, int], lane: int
) -> Broadcast | None:
    """The wait of a lane at the load or the atomic at ``at``, before which these registers are ``known``."""
    target = function.body[at].operands[0]
    if not isinstance(target, ptx.Register):
        return None
    loop = BroadcastLoop(function, at, symbols)
    state = dict(known)
    use = loop.first_use(target, at + 1, state)
    if use is None or not reads_only_at(function, target, use, at) or may_change(function, target, at + 1, use):
        return None
    compares, register, place = function.body[use].kind is Kind.COMPARISON, target, use
    if not compares:
        found = _find_handed_on(loop, use, state)
        if found is None:
            return None
        register, place = found
    test = _read_test(loop, register, place, state)
    if test is None:
        return None

    def make_loop() -> BroadcastLoop:
        made = BroadcastLoop(function, at, symbols)
        made.compare_with(_compared(function, place, register))
        return made

    back = {v: make_loop().returns({**known, target.index: v}) for v in test.examples}
    result = test.ending_result(back)
    if result is None:
        return None
    failing, kept = follow_failures(make_loop, known, [{target.index: v} for v in back if back[v]])
    if failing is None or len(failing.rounds) != 1:
        return None
    ways = [{**kept, target.index: v} for v in back if not back[v]]
    if _is_noticed(failing, ways):
        return None
    (events,) = failing.rounds
    shape = _read_round(events, lane)
    if shape is None or (not compares and use != shape.write):
        return None  # nothing else knows more of the value than that the wait has ended
    values = {v: _handed_on(make_loop(), {**kept, target.index: v}, shape) for v in back}
    fails, ends = ({values[v] for v in back if back[v] is again} for again in (True, False))
    size = type_size(test.type) if shape.word is None else shape.word[1]
    if compares and not (
        len(fails) == len(ends) == 1 and all(v is not None and v >> 8 * size - 1 == 0 for v in fails | ends)
    ):
        return None
    if not compares and (size != type_size(test.type) or any(values[v] != v for v in back)):
        return None
    return Broadcast(
        test.until(ends=result, alone=True), shape.meeting, shape.write, shape.read, shape.word, shape.barriers,
        tuple(v for v in fails if v is not None), tuple(v for v in ends if v is not None), not compares,
        any(e.what == BARRIER for e in events),
    )  # fmt: skip


def _find_handed_on(loop: BroadcastLoop, use: int, known: Known) -> tuple[ptx.Register, int] | None:
    """Where a value that is handed on at ``use``, where these registers are ``known``, is compared, and the register
    that has it there, where they are updated.
    """
    read = use if loop.function.body[use].kind is Kind.SHUFFLE else loop.first_read(use, known)
    return None if read is None else _find_only_test(loop, read, known)


def _find_only_test(loop: BroadcastLoop, read: int, known: Known) -> tuple[ptx.Register, int] | None:
    """The one place where what was received at ``read`` is compared, and the register that has it."""
    register = loop.function.body[read].operands[0]
    if not isinstance(register, ptx.Register):
        return None
    known.pop(register.index, None)
    place = loop.first_use(register, read + 1, known)
    if place is None or not reads_only_at(loop.function, register, place, read):
        return None
    return None if may_change(loop.function, register, read + 1, place) else (register, place)


def _read_test(loop: BroadcastLoop, register: ptx.Register, place: int, known: Known) -> ValueTest | None:
    statement = loop.function.body[place]
    plain = statement.kind is Kind.COMPARISON and len(statement.opcode.parts) == 3 and statement.guard is None
    if not plain or find_fault(statement) is not None or statement.operands[1] == statement.operands[2]:
        return None
    return read_test(statement, register, lambda o: known_value(o, known))


def _compared(function: ptx.Function, place: int, register: ptx.Register) -> list[int]:
    operands = function.body[place].operands[1:3]
    return [r.index for o in operands if o != register for r in operand_registers(o)]


def _is_noticed(loop: BroadcastLoop, ways: list[dict[int, int]]) -> bool:
    """Whether something depends on what failed rounds left in registers but those that the look itself writes."""
    left = loop.left_behind()
    return left is None or loop.is_noticed(ways, left - {r.index for r in loop.poll.defs})


def _handed_on(loop: BroadcastLoop, known: Known, shape: _Round) -> int | None:
    """What is handed on after a look after which these registers are ``known``."""
    target = loop.function.body[shape.read].operands[0]
    assert isinstance(target, ptx.Register)
    place = loop.at + 1
    for _ in range(LOOKAHEAD):
        step = loop.step(place, known)
        if step is None or place == loop.at:
            return None
        if place == shape.read:
            return known.get(target.index)
        (place,) = step.following
    return None


class _Round(NamedTuple):
    meeting: int
    write: int
    read: int
    word: tuple[int, int] | None
    barriers: tuple[int, ...]


def _read_round(events: Events, lane: int) -> _Round | None:
    """What the thread that looks does in a round, in order from the look on; ``None`` if it does not hand it on."""
    hands = [k for k, e in enumerate(events) if e.what in (WRITES, SHUFFLES)]
    if len(hands) != 1:
        return None
    (at,) = hands
    hand, *behind = events[at:]
    before = list(events[:at])
    if hand.what == SHUFFLES:
        if hand.where != lane % WARP or any(e.what == READS for e in events):
            return None
        return _Round(hand.place, hand.place, hand.place, None, _barriers([*behind, *before]))
    meets = next((k for k, e in enumerate(behind) if e.what == BARRIER), None)
    if meets is None or any(e.what == READS for e in (*behind[:meets], *before)):
        return None
    rest, word = [*behind[meets + 1 :], *before], (hand.where, hand.size)
    reads = [e for e in rest if e.what == READS]
    if not _reads_in_time(rest, word) or any(e.what == WARP_BARRIER for e in behind[:meets]):
        return None
    return _Round(behind[meets].place, hand.place, reads[0].place, word, _barriers(rest))


def _barriers(events: Iterable[Event]) -> tuple[int, ...]:
    return tuple(e.place for e in events if e.what in (BARRIER, WARP_BARRIER))


def _reads_in_time(events: list[Event], word: tuple[int, int]) -> bool:
    """Whether one load of the whole word is followed by a barrier of the CTA."""
    reads = [k for k, e in enumerate(events) if e.what == READS]
    last = max((k for k, e in enumerate(events) if e.what == BARRIER), default=-1)
    return len(reads) == 1 and reads[0] < last and (events[reads[0]].where, events[reads[0]].size) == word


# --- the threads that wait for it -------------------------------------------------------------------------------------


def find_reader(
    function: ptx.Function, wait: Broadcast, known: Mapping[int, int], symbols: Mapping[str, int]
) -> int | None:
    """Where a thread that stands at the meeting, where these registers are ``known``, receives what was read, if it
    comes back with each value that fails, and nothing is left of that afterwards.
    """
    target = function.body[wait.meeting].operands[0]
    given = WORD if wait.word is not None else target.index if isinstance(target, ptx.Register) else None
    if given is None:
        return None
    loop = BroadcastLoop(function, wait.meeting, symbols)
    state = dict(known)
    read = wait.meeting if wait.word is None else loop.first_read(wait.meeting + 1, state)
    if read is None:
        return None
    compared: list[int] = []
    if wait.tested:
        found = _find_only_test(loop, read, state)
        test = None if found is None else _read_test(loop, *found, state)
        if found is None or test is None:
            return None
        compared = _compared(function, found[1], found[0])
        alike = (test.right, test.type) == (wait.wait.right, wait.wait.type)
        results = {test.holds(v) for v in wait.fails}, {test.holds(v) for v in wait.ends}
        if not alike or results not in (({True}, {False}), ({False}, {True})):
            return None

    def make_loop() -> BroadcastLoop:
        made = BroadcastLoop(function, wait.meeting, symbols)
        made.compare_with(compared)
        return made

    failing, kept = follow_failures(make_loop, known, [{given: v} for v in wait.fails])
    if failing is None or len(failing.rounds) != 1 or _is_noticed(failing, [{**kept, given: v} for v in wait.ends]):
        return None
    (events,) = failing.rounds
    if any(e.what in (WRITES, SHUFFLES) for e in events) or _barriers(events) != wait.barriers:
        return None
    if wait.word is None:
        return None if any(e.what == READS for e in events) else read
    return read if _reads_in_time(list(events), wait.word) else None


# --- everybody else ---------------------------------------------------------------------------------------------------


def foreign_access(op: Op, address: int, size: int, *, takes_part: bool) -> bool:
    """Whether an operation may touch a word of shared memory otherwise than by a generic access of a thread that takes
    part in its broadcasts.
    """
    inner = performed_operation(op)
    if isinstance(inner, ops.Load | ops.Store | ops.Atomic) and takes_part and inner.proxy == "generic":
        return False
    if any(True for part in inner.decisive for _ in registers_in(getattr(inner, part))):
        return True
    if isinstance(inner, ops.Load | ops.Store | ops.Atomic):
        return any(at < address + size and address < at + LARGEST for at in numbers_in(inner.address))
    # Of a copy the sizes are left open. It may have destinations at the same place of several CTAs.
    word = address % SHARED_WINDOW
    return any(at >= SHARED_BASE and at % SHARED_WINDOW < word + size for at in numbers_in(inner))


def touches_before_meeting(code: Sequence[Op], address: int, size: int) -> bool:
    """Whether a thread that has done this, and stands at the meeting, may have touched a word since the last barrier of
    the whole CTA before it.
    """
    for op in reversed(code[:-1]):
        if isinstance(op, ops.Barrier) and op.kind != "arrive" and op.count is None:
            return False
        if foreign_access(op, address, size, takes_part=False):
            return True
    return False
