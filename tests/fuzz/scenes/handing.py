"""Synchronisation between two threads of a scene, each way sufficient."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.scenes.scene import Actor, Bar, Scene

Hand = Callable[[Scene, Actor, Actor, bool], None]
"""Writes what the first thread executes to release, and the second to acquire; ``last``: a poll that gives up may
follow, for nobody waits for what comes after it."""


def flag(s: Scene, a: Actor, b: Actor, last: bool) -> None:
    """A flag in global memory."""
    word = s.use("fe"[s.flags % 2])
    s.flags += 1
    value = (s.flags + 1) // 2
    place = f"[{word}]"
    fence = f"fence.{s.random.choice(('acq_rel', 'release', 'sc'))}.{s.scope()};"
    match s.random.choice(("store", "store", "fence", "exch", "red", "fence red", "cas", "volatile")):
        case "store":
            a.once(f"st.release.{s.scope()}.global.u32 {place}, {value};")
        case "fence":
            a.once(fence, f"st.relaxed.{s.scope()}.global.u32 {place}, {value};")
        case "exch":
            sem = s.random.choice(("release", "acq_rel"))
            a.once(f"atom.{sem}.{s.scope()}.global.exch.b32 {a.result()}, {place}, {value};")
        case "red":
            a.once(f"red.release.{s.scope()}.global.add.u32 {place}, 1;")
        case "fence red":
            a.once(fence, f"red.relaxed.{s.scope()}.global.max.u32 {place}, {value};")
        case "cas":
            a.once(fence, f"atom.relaxed.{s.scope()}.global.cas.b32 {a.result()}, {place}, {value - 1}, {value};")
        case _:
            a.once(fence, f"st.volatile.global.u32 {place}, {value};")
    _take(s, b, place, value, last)


def _take(s: Scene, b: Actor, place: str, value: int, last: bool) -> None:
    fence = f"fence.{s.random.choice(('acq_rel', 'acquire', 'sc'))}.{s.scope()};"
    r = b.result()
    forms = ["await", "await", "await fence", "spin", "atom"] + ["once", "once fence"] * last
    form = s.random.choice(forms)
    match form:
        case "await":
            b.say(f"await ld.acquire.{s.scope()}.global.u32 {r}, {place} == {value};")
        case "await fence":
            b.say(f"await ld.relaxed.{s.scope()}.global.u32 {r}, {place} == {value};", fence)
        case "spin":
            p, label = b.predicate(), f"L{b.registers}"
            b.say(f"{label}:", f"ld.acquire.{s.scope()}.global.u32 {r}, {place};", f"setp.ne.u32 {p}, {r}, {value};")
            b.say(f"@{p} bra {label};")
        case "atom":
            p, label = b.predicate(), f"L{b.registers}"
            sem = s.random.choice(("acquire", "acq_rel"))
            b.say(f"{label}:", f"atom.{sem}.{s.scope()}.global.cas.b32 {r}, {place}, {value}, {value};")
            b.say(f"setp.ne.u32 {p}, {r}, {value};", f"@{p} bra {label};")
        case "once":
            b.say(f"ld.acquire.{s.scope()}.global.u32 {r}, {place};", f"if ({r} == {value}) {{")
            b.open += 1
        case _:
            b.say(f"ld.relaxed.{s.scope()}.global.u32 {r}, {place};", f"if ({r} == {value}) {{", fence)
            b.open += 1


def by_mbarrier(s: Scene, a: Actor, b: Actor, last: bool) -> None:
    """An mbarrier of the second thread's CTA: an arrival of the first thread, a wait of the second."""
    bar = s.bar(b.cta)
    arrive(s, a, bar, publishing=True)
    wait(s, b, bar, last)


def arrive(s: Scene, a: Actor, bar: Bar, *, publishing: bool, expect: int = 0) -> None:
    """The arrival that completes a phase, wherever its mbarrier is, after ``expect`` bytes have been announced."""
    far = a.cta != bar.cta
    scopes = ("cluster",) if s.near == "cluster" else ("cta", "cta", "cluster")
    scope = s.random.choice(scopes)
    space, place = ("shared::cluster", f"[{bar.name}@{bar.cta}]") if far else ("shared::cta", f"[{bar.name}]")
    lines: list[str] = []
    sem = f".release.{scope}" if s.near == "cluster" or s.chance(0.4) else ""
    if not publishing and s.chance(0.3):
        sem = f".relaxed.{scope}"
    elif publishing and s.chance(0.25):
        lines.append(f"fence.{s.random.choice(('acq_rel', 'release', 'sc'))}.{s.scope()};")
        sem = f".relaxed.{scope}"
    if expect and s.chance(0.75):
        lines.append(f"mbarrier.arrive.expect_tx{sem}.{space}.b64 _, {place}, {expect};")
        bar.arrivals += 1
    else:
        if expect:
            lines.append(f"mbarrier.expect_tx.relaxed.{scope}.{space}.b64 {place}, {expect};")
        form = s.random.choice(("arrive", "arrive", "arrive", "count", "drop", "twice", "no complete"))
        if form == "count":
            lines.append(f"mbarrier.arrive{sem}.{space}.b64 _, {place}, 2;")
        elif form == "drop":
            lines.append(f"mbarrier.arrive_drop{sem}.{space}.b64 _, {place};")
            bar.arrivals += 1  # one arrival is left for the phases after it
            lines.append(f"mbarrier.arrive{sem}.{space}.b64 _, {place};")
        elif form == "no complete" and not far:
            lines.append(f"mbarrier.arrive.noComplete.{space}.b64 _, {place}, 1;")
            lines.append(f"mbarrier.arrive{sem}.{space}.b64 _, {place};")
        else:
            lines += [f"mbarrier.arrive{sem}.{space}.b64 _, {place};"] * (2 if form == "twice" else 1)
        bar.arrivals += 2 if form in ("count", "twice") or (form == "no complete" and not far) else 1
    a.once(*lines)


def wait(s: Scene, b: Actor, bar: Bar, last: bool) -> None:
    """A wait for the phase of an mbarrier that comes next, by any kind of poll."""
    parity = bar.phase % 2
    bar.phase += 1
    scope = "cluster" if s.near == "cluster" else s.random.choice(("cta", "cluster"))
    sem = f".acquire.{scope}" if s.near == "cluster" or s.chance(0.4) else ""
    after: tuple[str, ...] = ()
    if s.chance(0.2):
        sem, after = f".relaxed.{scope}", (f"fence.{s.random.choice(('acq_rel', 'acquire', 'sc'))}.{s.scope()};",)
    which = s.random.choice(("try_wait", "try_wait", "test_wait"))
    form = s.random.choices(("await", "spin", "once"), (6, 1, 2 * last))[0]
    name = f"mbarrier.{which}.parity{sem}.shared::cta.b64"
    if form == "await":
        b.say(f"await {name} [{bar.name}], {parity};")
    elif form == "spin":
        p, label = b.predicate(), f"L{b.registers}"
        b.say(f"{label}:", f"{name} {p}, [{bar.name}], {parity};", f"@!{p} bra {label};")
    else:
        p, r = b.predicate(), b.result()
        b.say(f"{name} {p}, [{bar.name}], {parity};", f"selp.u32 {r}, 1, 0, {p};", f"if ({r} == 1) {{")
        b.open += 1
    b.say(*after)


def cta_barrier(s: Scene, a: Actor, b: Actor, last: bool) -> None:
    """A barrier of the CTA, of the two threads or of all; a reducing one now and then."""
    everyone = [x for x in s.actors if x.cta == a.cta]
    s.barriers += 1
    width = sum(128 if x.wide else 32 for x in everyone)
    number = s.random.choice((0, s.barriers % 16))
    match s.random.choice(("sync", "sync", "count", "pair", "arrive", "red", "cta")):
        case "pair" if not (a.wide or b.wide):
            a.say(f"bar.sync {s.barriers % 16}, 64;")
            b.say(f"bar.sync {s.barriers % 16}, 64;")
        case "arrive" if not (a.wide or b.wide):
            a.say(f"bar.arrive {s.barriers % 16}, 64;")
            b.say(f"bar.sync {s.barriers % 16}, 64;")
        case "red":
            for x in everyone:
                p, r = x.predicate(), x.result()
                x.say(f"setp.eq.u32 {p}, {s.random.randint(0, 1)}, 1;", f"bar.red.popc.u32 {r}, {number}, {p};")
        case "count":
            for x in everyone:
                x.say(f"bar.sync {number}, {width};")
        case "cta":
            for x in everyone:
                x.say(f"barrier.cta.sync.aligned {number};" if s.chance(0.5) else f"barrier.sync {number};")
        case _:
            for x in everyone:
                x.say(f"bar.sync {number};")


def cluster_barrier(s: Scene, a: Actor, b: Actor, last: bool) -> None:
    """A barrier of the cluster; a relaxed arrival with a fence before it now and then."""
    aligned = ".aligned" if s.chance(0.2) else ""
    for x in s.actors:
        if s.chance(0.25):
            x.say(f"fence.{s.random.choice(('acq_rel', 'release'))}.{s.random.choice(('cluster', 'gpu'))};")
            x.say(f"barrier.cluster.arrive.relaxed{aligned};")
        else:
            x.say(f"barrier.cluster.arrive{s.random.choice(('', '.release'))}{aligned};")
        x.say(f"barrier.cluster.wait{s.random.choice(('', '.acquire'))}{aligned};")


def warp_barrier(s: Scene, a: Actor, b: Actor, last: bool) -> None:
    """bar.warp.sync of the two lanes or of all."""
    mask = sum(1 << s.actors.index(x) for x in (a, b)) if s.chance(0.5) else s.everyone
    for k, x in enumerate(s.actors):
        if mask >> k & 1:
            x.say(f"bar.warp.sync {mask};")


HANDS: dict[str, tuple[Hand, ...]] = {
    "warp": (warp_barrier, warp_barrier, flag, by_mbarrier),
    "cta": (cta_barrier, cta_barrier, by_mbarrier, by_mbarrier, flag),
    "cluster": (cluster_barrier, by_mbarrier, by_mbarrier, flag),
    "apart": (flag,),
}
