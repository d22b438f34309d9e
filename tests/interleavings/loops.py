"""Random programs whose threads go round: for a value, for an mbarrier, until they have counted; and what a round does.

A round may read several words, weakly or not, poll, arrive, initialise or invalidate an mbarrier, meet others at a
barrier, count by an atomic, wait for something else in a loop of its own, leave in the middle. Other threads, or the
same one before, give it what it waits for, mostly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.fuzz.conditions import condition
from tests.fuzz.draft import Draft, Role

WORDS = ("x", "y", "d")
OBJECTS = (
    ".global .u32 x = 0;",
    ".global .u32 y = 0;",
    ".global .u32 d = 0;",
    ".global .u32 n = 0;",
    ".shared .align 8 .b64 b;",
    ".shared .align 8 .b64 c;",
)
COPIES = (".global .align 16 .u32 src[4] = {1, 2, 3, 4};", ".shared .align 16 .u32 buf[4];")


@dataclass(slots=True)
class Thread:
    """A thread while it is written."""

    random: Random
    together: bool
    copies: bool
    lines: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    names: int = 0

    def fresh(self) -> int:
        """A number that no name of the thread has."""
        self.names += 1
        return self.names

    def choose(self, **weights: int) -> str:
        """One of the names, by their weights."""
        return self.random.choices(list(weights), list(weights.values()))[0].replace("_", ".")

    def scope(self) -> str:
        """A scope that includes the other threads, mostly."""
        return self.choose(cta=3 if self.together else 1, gpu=6)


def looping(random: Random) -> Draft:
    """Two or three threads, at least one of which goes round."""
    together = random.random() < 0.75
    copies = random.random() < 0.15
    count = random.choices((2, 3), (4, 1))[0]
    objects = random.choice(("", "b", "b", "b", "bc"))
    threads = [Thread(random, together, copies) for _ in range(count)]
    rounds = 0
    if objects and random.random() < 0.9:
        rounds += _begun(random, threads, objects)
    gives = random.random() < 0.7
    for k, t in enumerate(threads):
        for _ in range(random.choice((1, 1, 2, 2, 3))):
            loops = random.random() < (0.45 if rounds else 0.7) and not (gives and k == 0)
            if loops or (k == count - 1 and not rounds):
                rounds += 1
                _loop(t, objects, 0)
            else:
                _statement(t, objects)
        if gives and k == 0:
            _give(t, objects)
    shown = [f"P{k}:{r}" for k, t in enumerate(threads) for r in t.results][:5]
    roles = tuple(Role(f"P{k}", "cta 0" if together else f"cta {k}", tuple(t.lines)) for k, t in enumerate(threads))
    asked = condition(random, shown) if shown else ""
    return Draft("looping", "", OBJECTS + (COPIES if copies else ()), roles, tuple(shown), asked)


def _begun(random: Random, threads: list[Thread], objects: str) -> int:
    """One thread begins the mbarriers and tells the others, by a barrier or by a word that they look for in a loop; how
    many loops there are by then.
    """
    first, *others = threads
    for name in objects:
        first.lines.append(f"mbarrier.init.shared::cta.b64 [{name}], {random.choice((1, 1, 1, 2))};")
    if not first.together or random.random() < 0.05:
        return 0
    if random.random() < 0.65:
        for t in threads:
            t.lines.append("bar.sync 0;")
        return 0
    first.lines.append(f"st.release.{first.scope()}.global.u32 [x], 1;")
    for t in others:
        number, body = t.fresh(), len(t.lines)
        r = f"r{number}"
        t.lines.append(f"ld.acquire.{t.scope()}.global.u32 {r}, [x];")
        if random.random() < 0.5:
            _statement(t, objects)
        lines = t.lines[body:]
        if random.random() < 0.3:
            random.shuffle(lines)
        t.lines[body:] = [f"L{number}:", *lines, f"setp.ne.u32 %p{number}, {r}, 1;", f"@%p{number} bra L{number};"]
    return len(others)


def _give(t: Thread, objects: str) -> None:
    """What others wait for, mostly."""
    for word in t.random.sample(WORDS, 2):
        t.lines.append(f"st.{t.choose(release=4, relaxed=1)}.{t.scope()}.global.u32 [{word}], 1;")
    if objects and t.random.random() < 0.5:
        t.lines.append(f"mbarrier.arrive.shared::cta.b64 _, [{t.random.choice(objects)}];")


def _statement(t: Thread, objects: str) -> None:
    """What a thread does outside of loops, or in a round beside looking."""
    kind = t.choose(
        store=8, load=4, atomic=3, fence=1, await_=2, mbarrier=10 if objects else 0, barrier=2 if t.together else 0,
        copy=4 if t.copies and objects else 0,
    )  # fmt: skip
    word = t.random.choice(WORDS)
    match kind:
        case "store":
            sem = t.choose(weak=2, relaxed=2, release=4)
            name = "" if sem == "weak" else f"{sem}.{t.scope()}."
            t.lines.append(f"st.{name}global.u32 [{word}], {t.random.choice((1, 1, 2))};")
        case "load":
            _load(t, word)
        case "atomic":
            _atomic(t)
        case "fence":
            t.lines.append(f"fence.{t.choose(sc=1, acq_rel=3)}.{t.scope()};".replace("acq.rel", "acq_rel"))
        case "await.":
            r = _result(t)
            t.lines.append(f"await ld.{t.choose(relaxed=1, acquire=3)}.{t.scope()}.global.u32 {r}, [{word}] == 1;")
        case "mbarrier":
            _mbarrier(t, objects)
        case "barrier":
            t.lines.append(f"bar.{t.random.choice(('sync 0', 'sync 1, 64', 'arrive 1, 64'))};")
        case "copy":
            t.lines += [
                "mbarrier.arrive.expect_tx.shared::cta.b64 _, [b], 16;",
                "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 16, [b];",
            ]


def _mbarrier(t: Thread, objects: str) -> None:
    name = t.random.choice(objects)
    kind = t.choose(arrive=10, expect=2, drop=1, init=1, inval=1, await_=5, poll=3, tx=2, state=2)
    operand = f"[{name}]"
    match kind:
        case "arrive":
            t.lines.append(f"mbarrier.arrive.shared::cta.b64 _, {operand};")
        case "expect":
            t.lines.append(f"mbarrier.arrive.expect_tx.shared::cta.b64 _, {operand}, 16;")
            t.lines.append(f"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 {operand}, 16;")
        case "drop":
            t.lines.append(f"mbarrier.arrive_drop.shared::cta.b64 _, {operand};")
        case "init":
            t.lines.append(f"mbarrier.init.shared::cta.b64 {operand}, 1;")
        case "inval":
            t.lines.append(f"mbarrier.inval.shared::cta.b64 {operand};")
        case "await.":
            t.lines.append(f"await mbarrier.try_wait.parity.shared::cta.b64 {operand}, {t.random.choice((0, 0, 1))};")
        case "poll":
            _poll(t, name)
        case "tx":
            which = t.random.choice(("expect", "complete"))
            t.lines.append(f"mbarrier.{which}_tx.relaxed.cta.shared::cta.b64 {operand}, 16;")
        case "state":
            token = f"%rd{t.fresh()}"
            t.lines.append(f"mbarrier.arrive.shared::cta.b64 {token}, {operand};")
            t.lines.append(f"await mbarrier.try_wait.shared::cta.b64 {operand}, {token};")


def _poll(t: Thread, name: str) -> str:
    """The predicate that says whether a phase is over."""
    p = f"%p{t.fresh()}"
    which, sem = t.random.choice(("try_wait", "test_wait")), t.random.choice(("", "", ".relaxed.cta"))
    t.lines.append(f"mbarrier.{which}.parity{sem}.shared::cta.b64 {p}, [{name}], {t.random.choice((0, 0, 0, 1))};")
    return p


def _result(t: Thread) -> str:
    t.results.append(f"r{t.fresh()}")
    return t.results[-1]


def _load(t: Thread, word: str) -> str:
    r = _result(t)
    sem = t.choose(weak=2, relaxed=3, acquire=5)
    name = "" if sem == "weak" else f"{sem}.{t.scope()}."
    t.lines.append(f"ld.{name}global.u32 {r}, [{word}];")
    return r


def _atomic(t: Thread) -> str:
    r = _result(t)
    sem = t.random.choice(("relaxed", "acq_rel", "acquire", "release"))
    what = t.random.choice(("add.u32", "add.u32", "exch.b32", "cas.b32", "inc.u32"))
    operands = {"cas.b32": "0, 1", "inc.u32": "1"}.get(what, "1")
    word = t.random.choice(("n", "n", "x"))
    t.lines.append(f"atom.{sem}.{t.scope()}.global.{what} {r}, [{word}], {operands};")
    return r


def _loop(t: Thread, objects: str, depth: int) -> None:
    """Goes round until what it looks at is as wanted, or until it has counted."""
    number = t.fresh()
    counted = t.random.random() < 0.2
    if counted:
        t.lines.append(f"mov.u32 r{number}, 0;")
    t.lines.append(f"L{number}:")
    again: list[str] = []
    parts = ["look"] * t.random.choices((1, 2), (3, 2))[0] + ["other"] * t.random.choices((0, 1, 2), (4, 4, 1))[0]
    t.random.shuffle(parts)
    for part in parts:
        if part == "look":
            again.append(_look(t, objects))
            if t.random.random() < 0.15:
                t.lines.append(f"@!{again[-1]} bra M{number};")
        elif depth == 0 and t.random.random() < 0.2:
            _loop(t, objects, 1)
        else:
            _statement(t, objects)
            if again and t.random.random() < 0.2 and not t.lines[-1].startswith(("await", "bar", "@")):
                t.lines[-1] = f"@{t.random.choice(('', '!'))}{again[-1]} {t.lines[-1]}"
    if counted:
        again.append(f"%p{t.fresh()}")
        t.lines += [
            f"add.u32 r{number}, r{number}, 1;",
            f"setp.lt.u32 {again[-1]}, r{number}, {t.random.choice((1, 2, 2))};",
        ]
    last = again[-1] if counted or len(again) == 1 or t.random.random() < 0.4 else ""
    if not last:
        last = f"%p{t.fresh()}"
        t.lines.append(f"{t.random.choice(('or', 'or', 'and'))}.pred {last}, {again[0]}, {again[-1]};")
    t.lines += [f"@{last} bra L{number};", f"M{number}:"]


def _look(t: Thread, objects: str) -> str:
    """Looks at something; the predicate that says that it is not as wanted."""
    kind = t.choose(load=6, poll=6 if objects else 0, atomic=2)
    if kind == "poll":
        p, q = _poll(t, t.random.choice(objects)), f"%p{t.fresh()}"
        t.lines.append(f"not.pred {q}, {p};")
        return q
    r = _load(t, t.random.choice(WORDS)) if kind == "load" else _atomic(t)
    q = f"%p{t.fresh()}"
    wanted = "ne" if kind == "load" else t.random.choice(("ne", "eq", "lt"))
    t.lines.append(f"setp.{wanted}.u32 {q}, {r}, {1 if wanted != 'eq' else 0};")
    return q
