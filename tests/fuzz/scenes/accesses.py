"""Accesses to the bytes of a scene: proxy, instruction, and completion.

An access that signals an mbarrier is announced and issued by one thread and may be waited for by another; every other
kind is over for its own thread when its statements are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz.scenes.handing import arrive, wait
from tests.fuzz.scenes.scene import Actor, Bar, Scene
from tests.fuzz.strong_copies import sometimes_strong

COMPLETE = "mbarrier::complete_tx::bytes"


@dataclass(frozen=True, slots=True)
class Place:
    """The bytes: an object of one CTA's shared memory, or of global memory."""

    name: str
    cta: int | None


@dataclass(frozen=True, slots=True)
class Done:
    """An access that has been written. ``signal``: the mbarrier that its completion signals, not waited for yet."""

    proxy: str
    signal: Bar | None = None


Access = Callable[[Scene, Actor, Place], Done]


def load(s: Scene, a: Actor, p: Place) -> Done:
    """A load of a word, of a part of one, or of two."""
    space, place = s.at(a, p.name, p.cta, s.random.choice((0, 0, 0, 1)))
    how = s.random.choices(("", ".relaxed.", ".acquire."), (6, 1, 1))[0]
    qualifier = f"{how}{s.scope()}" if how else ""
    match s.random.choice(("word", "word", "word", "half", "pair", "long")):
        case "half":
            a.say(f"ld{qualifier}.{space}.u16 %rs{a.registers}, {place};")
            a.registers += 1
        case "pair":
            space, place = s.at(a, p.name, p.cta, 0)
            a.say(f"ld.{space}.v2.u32 {{{a.result()}, {a.result()}}}, {place};")
        case "long":
            space, place = s.at(a, p.name, p.cta, 0)
            a.say(f"ld{qualifier}.{space}.u64 %rd{a.registers}, {place};")
            a.registers += 1
        case _:
            a.say(f"ld{qualifier}.{space}.u32 {a.result()}, {place};")
    return Done("generic")


def store(s: Scene, a: Actor, p: Place) -> Done:
    """A store, weak or relaxed."""
    space, place = s.at(a, p.name, p.cta, s.random.choice((0, 0, 0, 1)))
    qualifier = f".relaxed.{s.scope()}" if s.chance(0.2) else ""
    width = s.random.choice(("u32", "u32", "u32", "u16"))
    a.once(f"st{qualifier}.{space}.{width} {place}, {s.random.randint(1, 3)};")
    return Done("generic")


def atomic(s: Scene, a: Actor, p: Place) -> Done:
    """An atomic or a reduction of one word."""
    space, place = s.at(a, p.name, p.cta, 0)
    if s.chance(0.5):
        a.once(f"red.relaxed.{s.scope()}.{space}.add.u32 {place}, 1;")
    else:
        a.once(f"atom.relaxed.{s.scope()}.{space}.add.u32 {a.result()}, {place}, 1;")
    return Done("generic")


def cp_async(s: Scene, a: Actor, p: Place) -> Done:
    """cp.async into the bytes (of the own CTA), or out of them (global), waited for by group or by mbarrier."""
    other = Place("s", a.cta) if p.cta is None else Place("g", None)
    target, source = (other, p) if p.cta is None else (p, other)
    size = s.random.choice((4, 4, 8, 16))
    zeros = f", {size // 2}" if size > 4 and s.chance(0.2) else ""
    _, to = s.at(a, target.name, target.cta, 0)
    _, of = s.at(a, source.name, source.cta, 0)
    a.say(f"cp.async.ca.shared.global {to}, {of}, {size}{zeros};")
    match s.random.choice(("group", "group", "all", "two", "noinc", "inc")):
        case "group":
            a.say("cp.async.commit_group;", "cp.async.wait_group 0;")
        case "all":
            a.say("cp.async.wait_all;")
        case "two":
            a.say("cp.async.commit_group;", "cp.async.commit_group;", "cp.async.wait_group 1;")
        case form:
            bar = s.bar(a.cta)
            a.say(f"cp.async.mbarrier.arrive{'.noinc' if form == 'noinc' else ''}.shared::cta.b64 [{bar.name}];")
            bar.arrivals += 4 if a.wide else 1
            if form == "inc":  # net zero: another arrival is what completes the phase
                bar.arrivals -= 4 if a.wide else 1
                arrive(s, a, bar, publishing=False)
            return Done("generic", bar)
    return Done("generic")


def fill(s: Scene, a: Actor, p: Place) -> Done:
    """A bulk or tensor copy from global memory into shared memory of any CTA of the cluster."""
    assert p.cta is not None
    bar = s.bar(p.cta)
    far = p.cta != a.cta
    _, to = s.at(a, p.name, p.cta)
    signal = f"[{bar.name}@{p.cta}]" if far else f"[{bar.name}]"
    tensor = s.chance(0.35)
    announce(s, a, bar)
    space = "shared::cluster" if far or s.near == "cluster" or s.chance(0.3) else "shared::cta"
    if tensor:
        s.use("gm")
        a.once(f"cp.async.bulk.tensor.1d.{space}.global.tile.{COMPLETE} {to}, [gm, {{0}}], {signal};")
    elif s.near == "cluster" and s.chance(0.3):
        s.use("g")
        form, mask = f"{COMPLETE}.multicast::cluster", 1 << p.cta
        copy = f"cp.async.bulk.shared::cluster.global.{form} [{p.name}], [g], 16, [{bar.name}], {mask};"
        a.once(sometimes_strong(s.random, copy))
    else:
        s.use("g")
        a.once(sometimes_strong(s.random, f"cp.async.bulk.{space}.global.{COMPLETE} {to}, [g], 16, {signal};"))
    return Done("async", bar)


def announce(s: Scene, a: Actor, bar: Bar, size: int = 16) -> None:
    """The arrival that expects the bytes: by the issuer, or by a thread of the CTA whose mbarrier it is."""
    there = [x for x in s.actors if x.cta == bar.cta and not x.open]
    who = a if (a.cta == bar.cta and s.chance(0.7)) or not there else s.random.choice(there)
    arrive(s, who, bar, publishing=s.chance(0.5), expect=size)


def across(s: Scene, a: Actor, p: Place) -> Done:
    """A bulk copy or reduction from the own shared memory into that of another CTA of the cluster."""
    assert p.cta is not None
    bar = s.bar(p.cta)
    _, to = s.at(a, p.name, p.cta)
    s.use("t")
    announce(s, a, bar)
    a.once("st.shared.u32 [t[0]], 4;", "fence.proxy.async.shared::cta;")
    name, kind = ("cp.reduce", ".add.u32") if s.chance(0.3) else ("cp", "")
    copy = f"{name}.async.bulk.shared::cluster.shared::cta.{COMPLETE}{kind} {to}, [t], 16, [{bar.name}@{p.cta}];"
    a.once(sometimes_strong(s.random, copy))
    return Done("async", bar)


def sent(s: Scene, a: Actor, p: Place) -> Done:
    """st.async or red.async of a word into another CTA."""
    assert p.cta is not None
    bar = s.bar(p.cta)
    _, to = s.at(a, p.name, p.cta, 0)
    signal = f"[{bar.name}@{p.cta}]"
    if s.chance(0.3):
        announce(s, a, bar, 8)
        a.once(f"st.async.shared::cluster.{COMPLETE}.v2.u32 {to}, {{3, 4}}, {signal};")
        return Done("generic", bar)
    announce(s, a, bar, 4)
    if s.chance(0.5):
        a.once(f"st.async.shared::cluster.{COMPLETE}.u32 {to}, 3, {signal};")
    else:
        a.once(f"red.async.relaxed.cluster.shared::cluster.{COMPLETE}.add.u32 {to}, 2, {signal};")
    return Done("generic", bar)


def drain(s: Scene, a: Actor, p: Place) -> Done:
    """A bulk or tensor copy, or a reduction, from the own shared memory into global memory; with its group awaited.

    The bytes handed on are its source if they are shared memory, else its destination.
    """
    source = Place("t", a.cta) if p.cta is None else p
    out = p.name if p.cta is None else "h"
    s.use(source.name)
    if p.cta is None:
        a.once("st.shared.u32 [t[0]], 6;", "fence.proxy.async.shared::cta;")
    reducing = s.chance(0.3)
    if s.chance(0.35):
        s.use(f"{out}m")
        name = (
            "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile"
            if reducing
            else ("cp.async.bulk.tensor.1d.global.shared::cta.tile")
        )
        line = f"{name}.bulk_group [{out}m, {{0}}], [{source.name}];"
    else:
        s.use(out)
        name, kind = ("cp.reduce", ".add.u32") if reducing else ("cp", "")
        copy = f"{name}.async.bulk.global.shared::cta.bulk_group{kind} [{out}], [{source.name}], 16;"
        line = sometimes_strong(s.random, copy)
    read = ".read" if p.cta is not None and s.chance(0.6) else ""
    a.once(line, "cp.async.bulk.commit_group;", f"cp.async.bulk.wait_group{read} 0;")
    return Done("async")


def taken(s: Scene, a: Actor, p: Place) -> Done:
    """A bulk or tensor copy out of the bytes in global memory, awaited by the thread itself."""
    bar = s.bar(a.cta)
    s.use("t")
    announce(s, a, bar)
    if s.chance(0.35) and p.name in ("g", "h"):
        s.use(f"{p.name}m")
        a.once(f"cp.async.bulk.tensor.1d.shared::cta.global.tile.{COMPLETE} [t], [{p.name}m, {{0}}], [{bar.name}];")
    else:
        copy = f"cp.async.bulk.shared::cta.global.{COMPLETE} [t], [{p.name}], 16, [{bar.name}];"
        a.once(sometimes_strong(s.random, copy))
    wait(s, a, bar, False)
    return Done("async")


def multiplied(s: Scene, a: Actor, p: Place) -> Done:
    """A wgmma that reads the bytes (of the own CTA), and the wait for its group."""
    s.use("t")
    a.say("wgmma.fence.sync.aligned;")
    a.say(f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f0, %f1, %f2, %f3}}, [{p.name}, 16], [t, 16];")
    a.say("wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;")
    return Done("async")
