"""Random small programs, as the text of litmus tests.

Threads over CTAs and clusters execute fragments of common idioms (message passing in several strengths and widths,
barriers, cp.async with groups, bulk copies with groups or an mbarrier, reductions, proxies, branches, loops), each a
little damaged: statements are left out or mixed with others. A difference between two engines is a file as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SCOPES = ("cta", "cluster", "gpu", "sys")
OBJECTS = {
    "x": ".global .u32 x = 0;",
    "y": ".global .u32 y = 0;",
    "z": ".global .u32 z = 0;",
    "w": ".global .align 8 .u64 w = 0;",
    "src": ".global .align 16 .u32 src[8] = {1, 2, 3, 4, 5, 6, 7, 8};",
    "out": ".global .align 16 .u32 out[8];",
    "s": ".shared .align 16 .u32 s[8];",
    "bar": ".shared .align 8 .b64 bar;",
    "alias": "a @ generic aliases x;",
    "surface": "u @ surface aliases y;",
    "texture": "t @ texture aliases y;",
}
MODELS = ("ptx-9.0",) * 7 + ("ptx-9.3",) * 2


@dataclass(slots=True)
class Body:
    """The statements of one thread; ``results`` are the registers that hold what it has read."""

    random: Random
    thread: int
    cta: int
    clustered: bool
    copies: list[str]
    lines: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    registers: int = 0
    predicates: int = 0
    labels: int = 0
    accesses: int = 0

    def result(self) -> str:
        """A fresh register for a value that is read."""
        name = f"r{self.registers}"
        self.registers += 1
        self.results.append(name)
        return name

    def predicate(self) -> str:
        """A fresh predicate."""
        self.predicates += 1
        return f"%p{self.predicates}"

    def label(self) -> str:
        """A fresh label."""
        self.labels += 1
        return f"L{self.labels}"

    def value(self) -> str:
        """What is written: mostly a small constant, now and then something that was read."""
        if self.results and self.random.random() < 0.25:
            return self.random.choice(self.results)
        return str(self.random.randint(1, 3))

    def scope(self) -> str:
        """A scope; wide ones are more common."""
        return self.random.choices(SCOPES, (3, 1, 5, 1))[0]

    def chance(self, probability: float) -> bool:
        """Whether something happens."""
        return self.random.random() < probability

    def say(self, *lines: str) -> None:
        """Appends statements, now and then leaving one out."""
        for line in lines:
            if self.chance(0.93):
                self.lines.append(line)
            else:
                self.results = [r for r in self.results if not re.search(rf"\b{r}\b", line)]


Fragment = Callable[[Body], None]


def load(b: Body, place: str = "") -> None:
    """A load of a global word."""
    place = place or b.random.choice(("x", "y", "x", "y", "z"))
    how = b.random.choices(("weak", "relaxed", "acquire", "volatile"), (4, 4, 3, 1))[0]
    qualifier = "" if how == "weak" else f".{how}" if how == "volatile" else f".{how}.{b.scope()}"
    b.say(f"ld{qualifier}.global.u32 {b.result()}, [{place}];")
    b.accesses += 1


def store(b: Body, place: str = "") -> None:
    """A store to a global word."""
    place = place or b.random.choice(("x", "y", "x", "y", "z"))
    how = b.random.choices(("weak", "relaxed", "release", "volatile"), (4, 4, 3, 1))[0]
    qualifier = "" if how == "weak" else f".{how}" if how == "volatile" else f".{how}.{b.scope()}"
    b.say(f"st{qualifier}.global.u32 [{place}], {b.value()};")
    b.accesses += 1


def atomic(b: Body) -> None:
    """An atomic or a reduction."""
    place = b.random.choice(("x", "y"))
    sem, scope = b.random.choice(("relaxed", "acquire", "release", "acq_rel")), b.scope()
    op = b.random.choice(("add", "exch", "cas", "max", "min", "and", "or", "xor", "red"))
    if op == "red":
        b.say(f"red.{b.random.choice(('relaxed', 'release'))}.{scope}.global.add.u32 [{place}], 1;")
    elif op == "cas":
        b.say(f"atom.{sem}.{scope}.global.cas.b32 {b.result()}, [{place}], {b.random.randint(0, 1)}, {b.value()};")
    else:
        kind = "b32" if op in ("exch", "and", "or", "xor") else "u32"
        b.say(f"atom.{sem}.{scope}.global.{op}.{kind} {b.result()}, [{place}], {b.value()};")
    b.accesses += 2


def fence(b: Body) -> None:
    """A fence of memory or of a proxy."""
    b.say(
        b.random.choice(
            (
                f"fence.sc.{b.scope()};",
                f"fence.acq_rel.{b.scope()};",
                f"fence.acq_rel.{b.scope()};",
                f"fence.release.{b.scope()};",
                f"fence.acquire.{b.scope()};",
                "membar.gl;",
                "fence.proxy.async;",
            )
        )
    )


def width(b: Body) -> None:
    """An access to a part of a 64-bit word."""
    bits = b.random.choice((8, 16, 32, 64))
    offset = b.random.randrange(0, 8, bits // 8)
    strong = b.random.random() < 0.4 and bits >= 16
    qualifier = f".relaxed.{b.scope()}" if strong else ""
    b.accesses += 2
    if b.chance(0.15):
        if b.chance(0.5):
            b.say(f"st.global.v2.u32 [w], {{{b.value()}, {b.value()}}};")
        else:
            b.say(f"ld.global.v2.u32 {{{b.result()}, {b.result()}}}, [w];")
    elif b.chance(0.5):
        b.say(f"st{qualifier}.global.u{bits} [w + {offset}], {b.random.randint(1, 255)};")
    elif bits == 64:
        b.say(f"ld{qualifier}.global.u64 %rd{b.registers}, [w + {offset}];")
        b.registers += 1
    else:
        if bits == 32:
            b.results.append(f"r{b.registers}")
        b.say(f"ld{qualifier}.global.u{bits} {'%rs' if bits < 32 else 'r'}{b.registers}, [w + {offset}];")
        b.registers += 1


def arithmetic(b: Body) -> None:
    """A computation on what was read."""
    if not b.results:
        b.lines.append(f"ld.acquire.gpu.global.u32 {b.result()}, [{b.random.choice('xy')}];")
        b.accesses += 1
    a = b.random.choice(b.results)
    op = b.random.choice(("add.u32", "sub.u32", "xor.b32", "mul.lo.u32", "min.u32", "shl.b32", "max.s32", "and.b32"))
    other = b.random.choice([*b.results, "1", "2"])
    b.lines.append(f"{op} {b.result()}, {a}, {other};")


def branch(b: Body) -> None:
    """A branch on what was read."""
    r = b.result()
    b.lines.append(f"ld.relaxed.gpu.global.u32 {r}, [{b.random.choice('xy')}];")
    b.accesses += 1
    op, c = b.random.choice(("==", "!=", "<", ">")), b.random.randint(0, 2)
    if b.chance(0.5):
        p = b.predicate()
        name = {"==": "eq", "!=": "ne", "<": "lt", ">": "gt"}[op]
        b.lines.append(f"setp.{name}.u32 {p}, {r}, {c};")
        b.lines.append(
            f"@{b.random.choice(('', '!'))}{p} st.relaxed.gpu.global.u32 [{b.random.choice('xy')}], {b.value()};"
        )
        b.accesses += 1
        return
    b.lines.append(f"if ({r} {op} {c}) {{")
    b.random.choice((load, store, fence, store))(b)
    if b.chance(0.3):
        b.lines.append("} else {")
        b.random.choice((load, store))(b)
    b.lines.append("}")


def nested(b: Body) -> None:
    """A branch in a branch, or two in a row, now and then around an atomic, a fence or an access to shared memory."""
    inside = (load, store, store, atomic, fence) if b.chance(0.7) else (shared, load, store)
    for depth in range(b.random.randint(1, 2)):
        r = b.result()
        b.lines.append(f"ld.relaxed.gpu.global.u32 {r}, [{b.random.choice('xyz')}];")
        b.lines.append(f"if ({r} {b.random.choice(('==', '!=', '<'))} {b.random.randint(0, 2)}) {{")
        b.random.choice(inside)(b)
        if depth == 0 and b.chance(0.4):
            branch(b)
        if b.chance(0.4):
            b.lines.append("} else {")
            b.random.choice(inside)(b)
        b.lines.append("}")
        b.accesses += 1


def divided(b: Body) -> None:
    """A use of an mbarrier, a barrier or a group in one branch only, or in both."""
    r = b.result()
    b.lines.append(f"ld.relaxed.gpu.global.u32 {r}, [{b.random.choice('xy')}];")
    b.lines.append(f"if ({r} {b.random.choice(('==', '!='))} {b.random.randint(0, 1)}) {{")
    use = b.random.choice((arriving, arriving, waiting, meet, shared))
    use(b)
    if b.chance(0.5):
        b.lines.append("} else {")
        b.random.choice((use, store))(b)
    b.lines.append("}")
    b.accesses += 2


def locked(b: Body) -> None:
    """A lock taken by compare-and-swap in a loop, something done under it, and its release."""
    label, p, r = b.label(), b.predicate(), b.result()
    b.lines.append(f"{label}:")
    b.lines.append(f"atom.{b.random.choice(('acquire', 'acquire', 'relaxed'))}.gpu.global.cas.b32 {r}, [z], 0, 1;")
    b.lines.append(f"setp.ne.u32 {p}, {r}, 0;")
    b.lines.append(f"@{p} bra {label};")
    b.random.choice((load, store))(b, b.random.choice("xy"))
    if b.chance(0.8):
        b.say(f"st.{b.random.choice(('release', 'release', 'relaxed'))}.gpu.global.u32 [z], 0;")
    b.accesses += 2


def rounds(b: Body) -> None:
    """Several phases of the mbarrier, its parity coming round again."""
    if b.chance(0.5):
        count = b.random.choices((2, 3), (3, 1))[0]
        b.lines.append(f"for k in 0..{count} {{")
        b.random.choice((arriving, lambda b: b.say("mbarrier.arrive.shared::cta.b64 _, [bar];")))(b)
        if b.chance(0.85):
            b.lines.append("await mbarrier.try_wait.parity.shared::cta.b64 [bar], k % 2;")
        if b.chance(0.3):
            b.say(f"st.shared.u32 [s[0]], {b.value()};")
        b.lines.append("}")
    elif b.chance(0.5):
        token, p = f"%rd{b.registers}", b.predicate()
        b.registers += 1
        b.lines.append(f"mbarrier.arrive.shared::cta.b64 {token}, [bar];")
        if b.chance(0.5):
            b.lines.append(f"await mbarrier.try_wait.shared::cta.b64 [bar], {token};")
        else:
            b.lines.append(f"mbarrier.test_wait.shared::cta.b64 {p}, [bar], {token};")
            b.lines.append(f"selp.u32 {b.result()}, 1, 0, {p};")
    else:
        for parity in range(b.random.randint(1, 2)):
            b.say(f"await mbarrier.try_wait.parity.shared::cta.b64 [bar], {parity};")
        if b.chance(0.15):
            b.say("mbarrier.inval.shared::cta.b64 [bar];")
            if b.chance(0.5):
                b.say("mbarrier.init.shared::cta.b64 [bar], 1;")
        shared(b)
    b.accesses += 1


def gathering(b: Body) -> None:
    """A named barrier that some of the warps are enough for."""
    count = b.random.choices((64, 96), (12, 1))[0]
    b.random.choice((store, shared, load))(b)
    b.say(f"bar.{b.random.choices(('sync', 'arrive'), (5, 1))[0]} 1, {count};")
    if b.chance(0.4):
        b.random.choice((load, shared))(b)


def loop(b: Body) -> None:
    """A loop: a spin, a wait, or a few rounds with an effect."""
    place = b.random.choice("xy")
    sem = b.random.choice(("relaxed", "acquire"))
    form = b.random.choice(("await", "spin", "count", "for"))
    if form == "await":
        until = b.random.choice(("== 1", "!= 0", ">= 1"))
        b.lines.append(f"await ld.{sem}.{b.scope()}.global.u32 {b.result()}, [{place}] {until};")
    elif form == "for":
        i = b.random.choice("ij")
        b.lines.append(f"for {i} in 0..2 {{")
        b.lines.append(f"st.relaxed.gpu.global.u32 [{place}], {i} + 1;")
        b.lines.append("}")
        b.accesses += 1
    else:
        label, p, r = b.label(), b.predicate(), b.result()
        b.lines.append(f"{label}:")
        if form == "spin":
            b.lines.append(f"ld.{sem}.gpu.global.u32 {r}, [{place}];")
            b.lines.append(f"setp.eq.u32 {p}, {r}, 0;")
        else:
            b.lines.append(f"atom.{sem}.gpu.global.add.u32 {r}, [{place}], 1;")
            b.lines.append(f"setp.lt.u32 {p}, {r}, {b.random.randint(0, 1)};")
        b.lines.append(f"@{p} bra {label};")
    b.accesses += 2


def meet(b: Body) -> None:
    """An execution barrier."""
    choices = ["bar.sync 0;", "bar.sync 0;", "bar.arrive 1, 64;", "bar.sync 1, 64;", "bar.sync 1, 64;"]
    if b.clustered:
        choices += ["barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;"] * 4
        choices += ["barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;"]
    b.say(*b.random.choice(choices).split("\n"))


def shared(b: Body, words: int = 1) -> None:
    """A generic access to shared memory."""
    index = b.random.randrange(words)
    if b.chance(0.5):
        b.say(f"ld.shared.u32 {b.result()}, [s[{index}]];")
    else:
        b.say(f"st.shared.u32 [s[{index}]], {b.value()};")
    b.accesses += 1


def remote(b: Body) -> None:
    """An access to the shared memory of another CTA of the cluster."""
    rank = b.random.randint(0, 1)
    if b.chance(0.5):
        b.say(f"st.shared::cluster.u32 [s[0]@{rank}], {b.value()};")
    else:
        b.say(f"ld.shared::cluster.u32 {b.result()}, [s[0]@{rank}];")
    b.accesses += 1


def cp_async(b: Body) -> None:
    """cp.async with a group, and who reads or reuses its bytes."""
    size = b.random.choice((4, 4, 8))
    b.say(f"cp.async.ca.shared.global [s[0]], [src], {size};")
    b.accesses += size // 2
    if b.chance(0.25):
        b.say("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];")
        if b.chance(0.6):
            waiting(b)
    else:
        b.say("cp.async.commit_group;")
        if b.chance(0.3):
            b.say("cp.async.ca.shared.global [s[1]], [src + 4], 4;", "cp.async.commit_group;")
            b.accesses += 2
        b.say(b.random.choice(("cp.async.wait_group 0;", "cp.async.wait_all;", "cp.async.wait_group 1;")))
    tail(b)


def tail(b: Body) -> None:
    """What follows a copy: a read, a write, a barrier, a fence."""
    for _ in range(b.random.randint(1, 2)):
        form = b.random.choice(("read", "read", "write", "source", "barrier", "fence"))
        if form == "read":
            b.say(f"ld.shared.u32 {b.result()}, [s[{b.random.randint(0, 1)}]];")
        elif form == "write":
            b.say(f"st.shared.u32 [s[0]], {b.value()};")
        elif form == "source":
            b.say(f"st.global.u32 [src], {b.value()};")
        elif form == "barrier":
            b.say("bar.sync 0;")
        else:
            b.say(b.random.choice(("fence.proxy.async.shared::cta;", "fence.proxy.async;", "fence.acq_rel.cta;")))
        b.accesses += form in ("read", "write", "source")


def bulk_load(b: Body) -> None:
    """A bulk copy into shared memory that signals an mbarrier."""
    if len(b.copies) > 1 and b.chance(0.9):
        published(b)
        return
    b.copies.append("load")
    if b.chance(0.4):
        b.say(f"st.shared.u32 [s[0]], {b.value()};", "fence.proxy.async.shared::cta;")
    announced = b.random.choices((16, 32), (9, 1))[0]
    b.say(f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {announced};")
    b.say("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [src], 16, [bar];")
    b.accesses += 5
    if b.chance(0.8):
        waiting(b)
    tail(b)


def bulk_store(b: Body) -> None:
    """A bulk copy or reduction out of shared memory, with a group."""
    if b.copies and b.chance(0.9):  # several large copies have too many executions
        tail(b)
        return
    b.copies.append("store")
    b.say(f"st.shared.u32 [s[0]], {b.value()};", "fence.proxy.async.shared::cta;")
    reducing = b.chance(0.3)
    name = "cp.reduce.async.bulk" if reducing else "cp.async.bulk"
    b.say(f"{name}.global.shared::cta.bulk_group{'.add.u32' if reducing else ''} [out], [s], 16;")
    b.say("cp.async.bulk.commit_group;")
    b.say(
        b.random.choice(
            ("cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group.read 0;")
        )
    )
    b.accesses += 5
    if b.chance(0.5):
        b.say(f"ld.global.u32 {b.result()}, [out[0]];")
    elif b.chance(0.5):
        b.say(f"st.shared.u32 [s[0]], {b.value()};")
    else:
        b.say(f"st.release.gpu.global.u32 [x], {b.value()};")


def arriving(b: Body) -> None:
    """An arrival at the mbarrier."""
    sem = b.random.choice(("", "", ".release.cta", ".relaxed.cta", ".release.cluster"))
    form = b.random.choice(("arrive", "arrive", "arrive", "expect", "drop", "tx"))
    if form == "expect":
        b.say(f"mbarrier.arrive.expect_tx{sem}.shared::cta.b64 _, [bar], 16;")
    elif form == "tx":
        kind = b.random.choice(("expect_tx", "complete_tx"))
        b.say(f"mbarrier.{kind}.relaxed.cta.shared::cta.b64 [bar], 16;")
    elif form == "drop":
        b.say(f"mbarrier.arrive_drop{sem}.shared::cta.b64 _, [bar];")
    else:
        b.say(f"mbarrier.arrive{sem}.shared::cta.b64 _, [bar];")


def waiting(b: Body) -> None:
    """A wait on the mbarrier."""
    sem = b.random.choice(("", "", "", ".acquire.cta", ".relaxed.cta", ".acquire.cluster"))
    parity = b.random.choices((0, 1), (6, 1))[0]
    if b.chance(0.85):
        b.lines.append(f"await mbarrier.try_wait.parity{sem}.shared::cta.b64 [bar], {parity};")
    else:
        p = b.predicate()
        b.lines.append(f"mbarrier.test_wait.parity{sem}.shared::cta.b64 {p}, [bar], {parity};")
        r = b.result()
        b.lines.append(f"selp.u32 {r}, 1, 0, {p};")


def published(b: Body) -> None:
    """A write before an arrival, or a wait before a read."""
    if b.chance(0.5):
        b.random.choice((store, shared))(b)
        arriving(b)
    else:
        waiting(b)
        b.random.choice((load, shared))(b)


def other_proxy(b: Body) -> None:
    """An access through another address or another proxy, and fences of theirs."""
    form = b.random.choice(
        ("alias load", "alias store", "alias fence", "surface load", "surface store", "texture", "fence")
    )
    match form:
        case "alias load":
            load(b, "a")
        case "alias store":
            store(b, "a")
        case "alias fence":
            b.say("fence.proxy.alias;")
        case "surface load":
            b.say(f"suld.weak {b.result()}, u;")
        case "surface store":
            b.say(f"sust.weak u, {b.random.randint(1, 3)};")
        case "texture":
            b.say(f"tld.weak {b.result()}, t;")
        case _:
            b.say(b.random.choice(("fence.proxy.surface;", "fence.proxy.texture;")))
    b.accesses += 1


THEMES: dict[str, tuple[int, tuple[Fragment, ...]]] = {
    "classic": (5, (load, store, load, store, fence, atomic)),
    "values": (2, (load, store, arithmetic, atomic, branch)),
    "widths": (2, (width, width, width, fence, load, store)),
    "control": (3, (branch, loop, store, load, branch)),
    "barriers": (3, (meet, load, store, shared, meet)),
    "groups": (3, (cp_async, cp_async, shared, tail, meet)),
    "bulk": (3, (bulk_load, bulk_load, shared, tail)),
    "stores": (3, (bulk_store, bulk_store, shared, load)),
    "mbarrier": (4, (published, published, arriving, waiting, shared)),
    "cluster": (2, (meet, remote, remote, load, store, meet)),
    "branches": (3, (nested, nested, branch, store, fence, locked)),
    "divided": (2, (divided, divided, published, waiting, shared)),
    "phases": (3, (rounds, rounds, published, arriving, waiting)),
    "gathering": (3, (gathering, load, store, shared)),
    "proxies": (2, (other_proxy, other_proxy, load, store)),
}
TOGETHER = ("groups", "bulk", "stores", "mbarrier", "barriers", "divided", "phases", "gathering")
"""Themes whose threads are all of one CTA."""

LIMIT = 7
"""Accesses of one thread."""


def program(random: Random) -> str:
    """The text of a random program."""
    names = list(THEMES)
    theme = random.choices(names, [THEMES[n][0] for n in names])[0]
    fragments = THEMES[theme][1]
    clustered = theme == "cluster" or (theme != "gathering" and random.random() < 0.12)
    count = random.choices((2, 3, 4), (5, 4, 1) if theme != "gathering" else (1, 4, 4))[0]
    together = theme in TOGETHER or random.random() < 0.4
    uses_mbarrier = theme in ("bulk", "mbarrier", "divided", "phases") or (theme == "groups" and random.random() < 0.3)
    bodies: list[Body] = []
    copies: list[str] = []
    for k in range(count):
        cta = 0 if together and not clustered else k % 2
        b = Body(random, k, cta, clustered, copies)
        if uses_mbarrier:
            _set_up(b)
        if theme == "gathering":
            gathering(b)
        most = LIMIT if count < 4 else 3
        for _ in range(random.randint(1, 3 if theme in ("classic", "widths", "values", "proxies") else 2)):
            if b.accesses < most:
                random.choice(fragments)(b)
        if random.random() < 0.15:
            random.choice((load, store, fence))(b)
        if not b.lines:
            load(b)
        bodies.append(b)
    return _text(random, bodies, theme)


def _set_up(b: Body) -> None:
    """The first thread of a CTA initialises the mbarrier, and all of the CTA (or cluster) wait for that."""
    if b.thread == 0 or (b.clustered and b.thread == 1):
        arrivals = b.random.choices((1, 2, 3), (5, 4, 1))[0]
        b.lines.append(f"mbarrier.init.shared::cta.b64 [bar], {arrivals};")
    if b.clustered:
        b.lines += ["fence.mbarrier_init.release.cluster;", "barrier.cluster.arrive.relaxed;", "barrier.cluster.wait;"]
    elif b.chance(0.97):
        b.lines.append("bar.sync 0;")


def _text(random: Random, bodies: list[Body], theme: str) -> str:
    code = "\n".join(line for b in bodies for line in b.lines)
    used = {
        name
        for name in OBJECTS
        if re.search(rf"[\[ ({{]{name}\b", code) and name not in ("alias", "surface", "texture")
    }
    if re.search(r"\[a\]", code):
        used |= {"alias", "x"}
    if re.search(r"\bu[,;]", code):
        used |= {"surface", "y"}
    if re.search(r"\bt;", code):
        used |= {"texture", "y"}
    dialect = used & {"alias", "surface", "texture"}
    lines = [f"PTX random-{theme}", f"model {random.choice(MODELS)}", "{"]
    for name, declaration in OBJECTS.items():
        if name in used:
            lines.append("  " + (f"{name} = 0;" if dialect and name in ("x", "y", "z") else declaration))
    lines.append("}")
    for b in bodies:
        place = f"cluster 0, cta {b.cta}" if b.clustered else f"cta {b.cta}"
        lines.append(f"P{b.thread}@{place} {{")
        lines += [f"  {line}" for line in b.lines]
        lines.append("}")
    shown = [f"P{b.thread}:{r}" for b in bodies for r in b.results if re.search(rf"\b{r}\b", "\n".join(b.lines))][:6]
    shown += [name for name in ("x", "y") if name in used][: max(0, 7 - len(shown))]
    if "out" in used:
        shown.append("out[0]")
    if "w" in used:
        shown.append("w")
    if shown:
        lines.append(f"locations [{' '.join(f'{t};' for t in shown)}]")
        lines.append(_condition(random, shown))
    return "\n".join(lines) + "\n"


def _condition(random: Random, shown: list[str]) -> str:
    terms = random.sample(shown, min(len(shown), random.randint(1, 3)))
    parts = [f"{t} {random.choices(('==', '!=', '<'), (7, 1, 1))[0]} {random.randint(0, 3)}" for t in terms]
    kind = random.choices(("exists", "~exists", "forall"), (6, 1, 2))[0]
    joint = random.choice((" /\\ ", " /\\ ", " \\/ "))
    return f"{kind} ({joint.join(parts)})"


def programs() -> SearchStrategy[str]:
    """Random programs as a Hypothesis strategy; failing ones are shrunk through the choices of the generator."""
    from hypothesis import strategies

    return strategies.randoms(use_true_random=False).map(program)
