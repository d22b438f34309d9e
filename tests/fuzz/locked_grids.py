"""Random grids whose CTAs take locks, as modules and as threads with clocks:

    python -m tests.fuzz.locked_grids --programs 100 --seed 1

One answer is that of ``mcheck.checking.modules.pairs.locked_grid``. The other one shares nothing with it: it runs the
threads of all CTAs in random orders, and keeps for each what it knows of the others, as vector clocks: what it has
acquired. No program that is ``proved`` may get stuck there, or have two conflicting accesses of which neither is known.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from mcheck.base.budget import Limit
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.pairs.locked_grid import answer_locked
from mcheck.frontend.ptx.known_contents import Contents
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from tests.fuzz import locked_words
from tests.fuzz.judged_answers import compare_judged, judged
from tests.fuzz.pair_answers import follow_pair, say_why

THREADS = 2
ROWS, COUNTS = 256, 32
"""Where the rows that CTAs share begin in the data, and the words that they count in among the locks, in bytes."""


@dataclass(frozen=True)
class Plan:
    """What a CTA does: thread 0 takes a lock, all threads access the data, and thread 0 releases it."""

    ctas: int = 3
    locks: int = 1
    """CTAs take the lock of their number modulo this."""
    swap: str = "cas"
    take: str = "acq_rel.gpu"
    around: bool = False
    """Whether the loop of thread 0 hands the value on to all threads."""
    fence_after: str = ""
    barrier: bool = True
    before: tuple[str, ...] = ()
    """Accesses before the lock is taken: of the ``own`` row, that of the lock (``common``), or of the ``next`` lock."""
    counts: str = ""
    """What the first CTA under a lock does that finds 0 in its word: ``exch`` or ``store`` of 1 there."""
    counted: int = 1
    """What it stores."""
    asks: str = ""
    """Semantics and scope of the load of that word; weak if empty."""
    words: locked_words.Words | None = None
    """What thread 0 does under its lock with two words of 64 bits."""
    found: str = ""
    """What CTAs access behind the release that have found another value."""
    clears: bool = False
    """Whether the last section stores 0 there again."""
    work: tuple[str, ...] = ("load common", "store common")
    barrier_after: bool = True
    fence: str = ""
    release: str = "atom.exch"
    order: str = "acq_rel.gpu"
    freed: int = 0
    skips: int = -1
    """The CTA that does not release its lock."""
    after: tuple[str, ...] = ()
    again: bool = False
    """Whether all that is done twice."""
    nested: str = ""
    """A second lock inside: in ``one`` order, or in ``two``, by the parity of the CTA."""


RIGHT = {
    "a lock": Plan(),
    "two locks": Plan(ctas=4, locks=2),
    "exchanges": Plan(swap="exch"),
    "fences": Plan(take="relaxed.gpu", fence_after="fence.acq_rel.gpu", fence="fence.acq_rel.gpu", order="relaxed.gpu"),
    "a store releases": Plan(release="st", order="release.gpu"),
    "scope sys": Plan(take="acq_rel.sys", order="acq_rel.sys"),
    "a loop of all threads": Plan(around=True),
    "a loop of all threads that exchanges": Plan(around=True, swap="exch"),
    "a word that tells the first": Plan(counts="exch"),
    "a word that is stored to": Plan(counts="store"),
    "a word under each of two locks": Plan(ctas=4, locks=2, counts="exch", around=True),
    "a word that is asked by a strong load": Plan(counts="store", asks="relaxed.gpu"),
    "two sections": Plan(again=True),
    "a lock inside": Plan(nested="one"),
    **{name: Plan(words=words, found="store common") for name, words in locked_words.RIGHT.items()},
    "own rows outside": Plan(before=("store own",), after=("load own",)),
}


def generate(rng: random.Random) -> Plan:
    """A plan that differs from a right one in a few places."""
    plan = rng.choice([*RIGHT.values()])
    changes: list[dict[str, object]] = [
        {"take": rng.choice(["relaxed.gpu", "acquire.gpu", "acq_rel.cta", "release.gpu", "acq_rel.gpu"])},
        {"order": rng.choice(["relaxed.gpu", "release.gpu", "release.cta"])},
        {"release": rng.choice(["st", "weak", "atom.exch", "red.and", "atom.cas"])},
        {"fence_after": rng.choice(["", "fence.acq_rel.gpu", "fence.acq_rel.cta"])},
        {"fence": rng.choice(["", "fence.acq_rel.gpu", "fence.acq_rel.cta", "fence.sc.gpu"])},
        {"barrier": False},
        {"barrier_after": False},
        {"around": True},
        {"counts": rng.choice(["", "exch", "store"]), "counted": rng.choice([1, 1, 2])},
        {
            "counts": rng.choice(["exch", "store"]),
            "asks": rng.choice(["", "relaxed.gpu", "acquire.sys", "relaxed.cta"]),
        },
        {"counts": "store", "found": rng.choice(["load common", "store own", "store common"])},
        {"clears": True},
        {"counts": "", "words": locked_words.generate(rng), "found": "store common", "ctas": rng.choice([3, 4, 5])},
        {"locks": rng.choice([1, 2]), "ctas": rng.choice([2, 3, 4])},
        {"before": (rng.choice(["load common", "store own", "store common", "load next"]),)},
        {"after": (rng.choice(["load common", "store own", "store common", "load next"]),)},
        {"work": tuple(rng.sample(["load common", "store common", "load next", "store next", "store own"], 2))},
        {"freed": rng.choice([0, 2])},
        {"skips": rng.choice([-1, 0, 2])},
        {"again": True},
        {"nested": rng.choice(["one", "two"])},
        {"swap": "exch"},
    ]
    for change in rng.sample(changes, rng.choice([0, 1, 1, 2, 3])):
        plan = replace(plan, **change)  # type: ignore[arg-type]
    if plan.release == "st" and plan.order.startswith("acq_rel"):
        plan = replace(plan, order="release.gpu")
    return plan


# --- the module -------------------------------------------------------------------------------------------------------

HEAD = f""".version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 words)
.reqntid {THREADS}, 1, 1
{{
.reg .pred %p, %q, %z;
.reg .b32 %r<40>;
.reg .b64 %a<20>;
.shared .align 4 .b32 drawn;
ld.param.u64 %a1, [data];
ld.param.u64 %a2, [words];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %tid.x;
setp.eq.u32 %z, %r2, 0;
"""


def write(plan: Plan) -> str:
    """The module of a plan."""
    return "\n".join([HEAD, *_body(plan), "ret;", "}", ""])


def _body(plan: Plan) -> Iterator[str]:
    for name, number in (("%r3", 0), ("%r4", 1)):
        yield f"add.u32 {name}, %r1, {number};"
        yield f"rem.u32 {name}, {name}, {plan.locks};"
    for register, first in (("%r3", 3), ("%r4", 4)):
        yield from (f"mad.lo.u32 %r20, {register}, {THREADS}, %r2;", "mul.wide.u32 %a9, %r20, 4;")
        yield from (f"add.s64 %a{first}, %a1, %a9;", f"add.s64 %a{first}, %a{first}, {ROWS};")
    yield from (f"mad.lo.u32 %r20, %r1, {THREADS}, %r2;", "mul.wide.u32 %a9, %r20, 4;", "add.s64 %a5, %a1, %a9;")
    yield from ("mul.wide.u32 %a9, %r3, 4;", "add.s64 %a6, %a2, %a9;", f"add.s64 %a7, %a6, {COUNTS};")
    yield from ("and.b32 %r5, %r1, 1;", f"xor.b32 %r6, %r5, {int(plan.nested == 'two')};")
    for name in ("%r5", "%r6"):  # with a lock inside: which of 4 and 5 comes first
        if plan.nested != "two":
            yield f"mov.u32 {name}, 0;"
    yield from ("mul.wide.u32 %a9, %r5, 4;", "add.s64 %a11, %a2, %a9;", "add.s64 %a11, %a11, 16;")
    yield from (
        "xor.b32 %r5, %r5, 1;",
        "mul.wide.u32 %a9, %r5, 4;",
        "add.s64 %a12, %a2, %a9;",
        "add.s64 %a12, %a12, 16;",
    )
    for place in plan.before:
        yield _access(place)
    for k in range(1 + plan.again):
        yield from _section(plan, k)
    for place in plan.after:
        yield _access(place)


def _section(plan: Plan, k: int) -> Iterator[str]:
    locks = ("%a11", "%a12") if plan.nested else ("%a6",)
    for number, lock in enumerate(locks):
        yield from _take(plan, f"{k}_{number}", lock)
    if plan.barrier:
        yield "bar.sync 0;"
    if plan.counts:
        load = f"ld.{plan.asks}.global.u32" if plan.asks else "ld.global.u32"
        yield from (f"{load} %r10, [%a7];", "setp.ne.u32 %p, %r10, 0;", f"@%p bra COUNTED{k};", "bar.sync 0;")
        store = "atom.acq_rel.gpu.global.exch.b32 %r11, [%a7]," if plan.counts == "exch" else "st.global.u32 [%a7],"
        yield f"@%z {store} {plan.counted};"
        yield f"COUNTED{k}:"
    if plan.words is not None:
        yield from locked_words.write(plan.words, str(k))
    for place in plan.work:
        yield _access(place)
    if plan.barrier_after:
        yield "bar.sync 0;"
    if plan.clears and k == plan.again:
        yield "@%z st.global.u32 [%a7], 0;"
    for lock in reversed(locks):
        yield from _release(plan, k, lock)
    if (plan.counts or plan.words is not None) and plan.found:
        yield f"@%p {_access(plan.found)}"


def _take(plan: Plan, name: str, lock: str) -> Iterator[str]:
    compare = "0, 1" if plan.swap == "cas" else "1"
    attempt = f"atom.{plan.take}.global.{plan.swap}.b32 %r8, [{lock}], {compare};"
    if plan.around:
        yield from (f"TAKE{name}:", "bar.sync 0;", f"@%z {attempt}", "@%z st.shared.u32 [drawn], %r8;", "bar.sync 0;")
        yield from ("ld.shared.u32 %r9, [drawn];", "setp.eq.u32 %q, %r9, 1;", f"@%q bra TAKE{name};")
    else:
        yield from (
            f"@!%z bra TAKEN{name};",
            f"TAKE{name}:",
            attempt,
            "setp.ne.u32 %q, %r8, 0;",
            f"@%q bra TAKE{name};",
        )
        yield f"TAKEN{name}:"
    if plan.fence_after:
        yield f"{plan.fence_after};"


def _release(plan: Plan, k: int, lock: str) -> Iterator[str]:
    if plan.fence:
        yield f"{plan.fence};"
    if plan.skips >= 0:
        yield from (f"setp.ne.u32 %q, %r1, {plan.skips};", "and.pred %q, %q, %z;")
    guard = "%q" if plan.skips >= 0 else "%z"
    done = {
        "atom.exch": f"atom.{plan.order}.global.exch.b32 %r12, [{lock}], {plan.freed};",
        "atom.cas": f"atom.{plan.order}.global.cas.b32 %r12, [{lock}], 1, {plan.freed};",
        "red.and": f"red.{plan.order.replace('acq_rel', 'release')}.global.and.b32 [{lock}], {plan.freed};",
        "st": f"st.{plan.order}.global.u32 [{lock}], {plan.freed};",
        "weak": f"st.global.u32 [{lock}], {plan.freed};",
    }
    yield f"@{guard} {done[plan.release]}"


def _access(place: str) -> str:
    what, where = place.split()
    at = {"own": "%a5", "common": "%a3", "next": "%a4"}[where]
    return f"ld.global.u32 %r13, [{at}];" if what == "load" else f"st.global.u32 [{at}], %r2;"


def answer(plan: Plan) -> str:
    """``proved``, or why not."""
    return answer_module(write(plan), plan.ctas)


def answer_module(text: str, ctas: int, threads: int = THREADS, *, known_from: int = 0) -> str:
    """``proved``, or why not. Words before the byte ``known_from`` are unknown: earlier launches have left them."""
    module, seconds = parse_module(text), 30.0
    params = [{"buffer": 512}, {"buffer": 64, "init": {"hex": "00" * 64}}]
    given = {"grid": [ctas], "block": [threads], "params": {str(k): one for k, one in enumerate(params)}}
    launch = build_launch(module, from_object(given))
    if known_from:
        kept = (known_from, bytes(64 - known_from))
        launch = launch.with_contents(Contents(("buffer", launch.buffers[-1].name), 0, (kept,)))
    found, why = say_why(lambda: answer_locked(module, launch, partial(follow_pair, module), Limit(seconds)))
    return why if found is None else "proved" if found.verdict is Verdict.PROVED else "not proved"


# --- threads with clocks ----------------------------------------------------------------------------------------------

Clock = tuple[int, ...]
ORDERS = {"acquire": (True, False), "release": (False, True), "acq_rel": (True, True), "relaxed": (False, False)}


@dataclass
class Thread:
    """A thread: what it does, what it knows of all threads, what a fence would bring and has released."""

    cta: int
    steps: Iterator[tuple[str, ...]]
    clock: list[int]
    seen: list[int]
    fenced: list[int] | None = None
    at: tuple[str, ...] = ()
    value: int = 0


@dataclass
class Machine:
    """The memory of all threads: values of words, what the last release of each has told, and all weak accesses."""

    threads: list[Thread]
    values: dict[str, int] = field(default_factory=dict)
    told: dict[str, list[int]] = field(default_factory=dict)
    accesses: dict[str, list[tuple[int, int, bool, bool]]] = field(default_factory=dict)
    """Of each word the accesses: by which thread, at which time of it, whether it writes, whether it is strong."""
    raced: bool = False

    def touch(self, number: int, word: str, *, writes: bool, strong: bool = False) -> None:
        """Record an access, and whether it races with an earlier one."""
        thread = self.threads[number]
        thread.clock[number] += 1
        for other, time, wrote, was_strong in self.accesses.setdefault(word, []):
            ordered = other == number or thread.clock[other] >= time or (strong and was_strong)
            self.raced |= not ordered and (writes or wrote)
        self.accesses[word].append((number, thread.clock[number], writes, strong))

    def swap(self, number: int, word: str, order: str, new: int | None, expected: int | None = None) -> int:
        """An atomic, a strong store (without reading) if ``expected`` is -1."""
        thread = self.threads[number]
        kind, scope = order.split(".")
        acquires, releases = ORDERS[kind]
        wide = scope != "cta"
        self.touch(number, word, writes=True, strong=wide)
        old = self.values.get(word, 0)
        told = self.told.get(word, [0] * len(thread.clock))
        reads = expected != -1
        if reads and wide:
            thread.seen = _join(thread.seen, told)
            if acquires:
                thread.clock = _join(thread.clock, told)
        if new is not None and expected in (None, -1, old):
            self.values[word] = new
            mine = thread.clock if releases else thread.fenced
            kept = told if reads else [0] * len(told)  # an atomic goes on with what was released before it
            self.told[word] = _join(kept, mine) if mine is not None and wide else kept
        return old

    def update(self, number: int, low: str, high: str, how: str, value: str) -> int:
        """An update of two halves of a word at once."""
        old = self.values.get(low, 0) + (self.values.get(high, 0) << 32)
        new = locked_words.UPDATES[how](old, int(value))
        self.swap(number, low, "relaxed.gpu", new % locked_words.HALF)
        self.swap(number, high, "relaxed.gpu", new // locked_words.HALF)
        return old

    def ask(self, number: int, word: str, order: str) -> int:
        """A strong load."""
        thread = self.threads[number]
        kind, scope = order.split(".")
        self.touch(number, word, writes=False, strong=scope != "cta")
        told = self.told.get(word)
        if told is not None and scope != "cta":
            thread.seen = _join(thread.seen, told)
            if ORDERS[kind][0]:
                thread.clock = _join(thread.clock, told)
        return self.values.get(word, 0)


def _join(a: list[int], b: list[int]) -> list[int]:
    return [max(x, y) for x, y in zip(a, b, strict=True)]


def judge(plan: Plan, orders: int = 60) -> str:
    """``fine``, or what is wrong in some of so many orders of the threads."""
    rng = random.Random(repr(plan))
    for _ in range(orders):
        found = _run(plan, rng)
        if found != "fine":
            return found
    return "fine"


def _run(plan: Plan, rng: random.Random) -> str:
    count = plan.ctas * THREADS
    machine = Machine([])
    for number in range(count):
        thread = Thread(number // THREADS, iter(()), [0] * count, [0] * count)
        thread.steps = _steps(plan, machine, thread, number)
        machine.threads.append(thread)
    weights = [rng.choice([1, 1, 5, 30]) for _ in range(count)]
    alive = {number for number in range(count) if _advance(machine.threads[number])}
    while free := sorted(number for number in alive if _may_go_on(machine, number, alive)):
        number = rng.choices(free, [weights[k] for k in free])[0]
        thread = machine.threads[number]
        if thread.at[0] == "bar":
            waiting = [k for k in alive if k // THREADS == thread.cta]
            clock = [max(column) for column in zip(*(machine.threads[k].clock for k in waiting), strict=True)]
            for k in waiting:
                machine.threads[k].clock = list(clock)
        else:
            waiting = [number]
            _perform(machine, number)
        for k in waiting:
            if not _advance(machine.threads[k]):
                alive.discard(k)
        if machine.raced:
            return "race"
    return "stuck" if alive else "fine"


def _may_go_on(machine: Machine, number: int, alive: set[int]) -> bool:
    """Whether a thread does not wait: a failed attempt to take a lock changes nothing."""
    thread = machine.threads[number]
    if thread.at[0] == "bar":
        return all(machine.threads[k].at[0] == "bar" for k in alive if k // THREADS == thread.cta)
    return thread.at[0] != "take" or machine.values.get(thread.at[1], 0) in ((0, 2) if thread.at[-1] else (0,))


def _advance(thread: Thread) -> bool:
    thread.at = next(thread.steps, ())
    return bool(thread.at)


def _perform(machine: Machine, number: int) -> None:
    """Perform what a thread is at."""
    thread = machine.threads[number]
    what, *rest = thread.at
    match what:
        case "fence":
            wide = not rest[0].endswith("cta")
            if wide:
                thread.clock = _join(thread.clock, thread.seen)
                thread.fenced = list(thread.clock)
        case "take":
            word, order, swap, _ = rest
            machine.swap(number, word, order, 1, 0 if swap == "cas" else None)
        case "atomic":
            word, order, value, expected = rest
            machine.swap(number, word, order, int(value), None if expected == "" else int(expected))
        case "update":
            thread.value = machine.update(number, *rest)
        case "ask":
            thread.value = machine.ask(number, *rest)
        case "load" | "store":
            machine.touch(number, rest[0], writes=what == "store")
            if what == "load":
                thread.value = machine.values.get(rest[0], 0)
            elif len(rest) > 1:
                machine.values[rest[0]] = int(rest[1])
                machine.told.pop(rest[0], None)


def _steps(plan: Plan, machine: Machine, thread: Thread, number: int) -> Iterator[tuple[str, ...]]:
    cta, leads, own = thread.cta, number % THREADS == 0, number % THREADS
    lock = cta % plan.locks
    rows = {"own": f"own{cta}.{own}", "common": f"row{lock}.{own}", "next": f"row{(cta + 1) % plan.locks}.{own}"}

    def access(place: str) -> tuple[str, ...]:
        what, where = place.split()
        return what, rows[where]

    first = cta % 2 if plan.nested == "two" else 0
    locks = [f"inner{first}", f"inner{1 - first}"] if plan.nested else [f"lock{lock}"]
    was_found = False
    yield from map(access, plan.before)
    for k in range(1 + plan.again):
        for word in locks:
            if plan.around:
                yield ("bar",)
            if leads:
                yield "take", word, plan.take, plan.swap, "1" * plan.around  # which asks whether it was taken
            if plan.around:
                yield ("bar",)
            if plan.fence_after:
                yield "fence", plan.fence_after
        if plan.barrier:
            yield ("bar",)
        if plan.counts:
            yield ("ask", f"count{lock}", plan.asks) if plan.asks else ("load", f"count{lock}")
            was_found = thread.value != 0
            if not was_found:
                yield ("bar",)
                if leads and plan.counts == "exch":
                    yield "atomic", f"count{lock}", "acq_rel.gpu", str(plan.counted), ""
                elif leads:
                    yield "store", f"count{lock}", str(plan.counted)
        if plan.words is not None:
            was_found = (yield from locked_words.steps(plan.words, cta, lambda: thread.value)) if leads else False
        yield from map(access, plan.work)
        if plan.barrier_after:
            yield ("bar",)
        if plan.clears and leads and k == plan.again:
            yield "store", f"count{lock}", "0"
        for word in reversed(locks):
            if plan.fence:
                yield "fence", plan.fence
            if leads and cta != plan.skips:
                yield from _releases(plan, machine, word)
        if plan.found and was_found:
            yield access(plan.found)
    yield from map(access, plan.after)


def _releases(plan: Plan, machine: Machine, word: str) -> Iterator[tuple[str, ...]]:
    match plan.release:
        case "weak":
            yield "store", word, str(plan.freed)
        case "st":
            yield "atomic", word, plan.order, str(plan.freed), "-1"
        case "red.and":
            value = machine.values.get(word, 0) & plan.freed
            yield "atomic", word, plan.order.replace("acq_rel", "release"), str(value), ""
        case "atom.cas":
            yield "atomic", word, plan.order, str(plan.freed), "1"
        case _:
            yield "atomic", word, plan.order, str(plan.freed), ""


def main() -> int:
    """Compare the answers about random plans."""
    return compare_judged(__doc__, partial(judged, generate, answer, judge))


if __name__ == "__main__":
    sys.exit(main())
