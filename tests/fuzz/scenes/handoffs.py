"""Generator of correct handoffs: accesses to the same bytes in different threads, each properly ordered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from tests.fuzz.draft import MODELS, Draft
from tests.fuzz.scenes import accesses
from tests.fuzz.scenes.accesses import Access, Done, Place
from tests.fuzz.scenes.handing import HANDS, wait
from tests.fuzz.scenes.scene import Actor, Near, Scene

GLOBAL: Mapping[str, Access] = {
    "load": accesses.load,
    "store": accesses.store,
    "atomic": accesses.atomic,
    "cp.async": accesses.cp_async,
    "drain": accesses.drain,
    "taken": accesses.taken,
}
OWN: Mapping[str, Access] = {
    "load": accesses.load,
    "store": accesses.store,
    "atomic": accesses.atomic,
    "cp.async": accesses.cp_async,
    "fill": accesses.fill,
    "drain": accesses.drain,
    "wgmma": accesses.multiplied,
}
FAR: Mapping[str, Access] = {
    "load": accesses.load,
    "store": accesses.store,
    "atomic": accesses.atomic,
    "fill": accesses.fill,
    "across": accesses.across,
    "sent": accesses.sent,
}
READING = ("load", "taken", "wgmma")
"""Accesses that never write the bytes."""

COSTLY = ("fill", "drain", "taken", "across", "wgmma")


def scene(random: Random, name: str, near: Sequence[Near], wanted: Sequence[str]) -> Draft:
    """A handoff over two or three accesses, the first or second of them one of those ``wanted``."""
    where: Near = random.choice(list(near))
    s = Scene(random, where, _actors(random, where, wide="wgmma" in wanted and random.random() < 0.25))
    place = _place(s, wanted)
    hops = random.choices((2, 3), (3, 1) if where != "warp" else (2, 1))[0]
    actors = [s.actors[0]]
    while len(actors) < hops:
        actors.append(
            random.choice([a for a in s.actors if a is not actors[-1]] if random.random() < 0.9 else s.actors)
        )
    if any(a.wide for a in s.actors) and not any(a.wide for a in actors):
        actors[random.randrange(hops)] = next(a for a in s.actors if a.wide)
    done: Done | None = None
    costly = 0
    asked = random.randrange(2)
    for k, a in enumerate(actors):
        kinds = _kinds(a, place)
        options = [n for n in kinds if (n not in COSTLY or costly < 2) and (n != "wgmma" or "wgmma" in wanted)]
        if k == hops - 1 and random.random() < 0.5:
            options = [n for n in options if n in ("load", "taken", "store", "wgmma")] or options
        sought = [n for n in options if n in wanted]
        choice = random.choice(sought if sought and (k == asked or random.random() < 0.3) else options)
        if k:
            assert done is not None
            _between(s, actors[k - 1], a, place, done, choice, last=k == hops - 1)
        costly += choice in COSTLY
        done = kinds[choice](s, a, place)
    assert done is not None
    if done.signal is not None and random.random() < 0.9:
        last = next((a for a in (actors[-1], *s.actors) if a.cta == done.signal.cta and not a.open), None)
        if last is not None:
            wait(s, last, done.signal, True)
            if random.random() < 0.5:
                accesses.load(s, last, place)
    return s.draft(name, random.choice(MODELS))


def _actors(random: Random, near: Near, *, wide: bool) -> list[Actor]:
    count = 2 if wide else random.choices((2, 3), (2, 1))[0]
    made = []
    for k in range(count):
        cta = k % 2 if near in ("cluster", "apart") and (k < 2 or random.random() < 0.5) else 0
        place = f"cluster 0, cta {cta}" if near == "cluster" else f"cta {cta}"
        if near == "warp":
            place += f", warp 0, lane {k}"
        elif wide and k == 1:
            place += ", warp 4..8, lane 0"
        made.append(Actor(f"P{k}", cta, place, wide=wide and k == 1))
    return made


def _place(s: Scene, wanted: Sequence[str]) -> Place:
    """Bytes that at least two threads can reach and that the wanted accesses go with."""
    shared = any(n in ("fill", "wgmma", "across", "sent") for n in wanted) or s.chance(0.5)
    if not shared or s.near == "apart":
        s.use("g")
        return Place("g", None)
    s.use("s")
    cta = s.random.choice(s.actors).cta if not any(n in ("across", "sent") for n in wanted) else s.actors[1].cta
    if any(a.wide for a in s.actors):
        cta = next(a.cta for a in s.actors if a.wide)
    return Place("s", cta)


def _kinds(a: Actor, p: Place) -> Mapping[str, Access]:
    if p.cta is None:
        return {k: v for k, v in GLOBAL.items() if not (a.wide and k == "taken")}
    return OWN if p.cta == a.cta else FAR


def _between(s: Scene, a: Actor, b: Actor, p: Place, done: Done, coming: str, *, last: bool) -> None:
    """What orders the next access after one: its completion, the proxy fences, the synchronisation."""
    waiter = a
    if done.signal is not None:
        here = [x for x in (b, a) if x.cta == done.signal.cta] or [x for x in s.actors if x.cta == done.signal.cta]
        waiter = here[0]
        wait(s, waiter, done.signal, last and waiter is b)
    entering = coming in ("fill", "drain", "taken", "across", "wgmma") and done.proxy == "generic"
    hand = s.random.choice(HANDS[s.near if waiter.cta == b.cta or s.near != "cta" else "cta"])
    if waiter is b:
        if entering:
            _fence(s, b, p)
        return
    apart = waiter.cta != b.cta
    halves = entering and s.near == "cluster" and s.chance(0.3)
    writer = entering and not halves and (apart or s.chance(0.75))
    if halves:
        waiter.say("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;")
    elif writer:
        _fence(s, waiter, p)
    hand(s, waiter, b, last)
    if halves:
        b.say("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;")
    elif entering and (apart or not writer):
        _fence(s, b, p)


def _fence(s: Scene, a: Actor, p: Place) -> None:
    """A proxy fence that covers the bytes."""
    space = "global" if p.cta is None else "shared::cta" if p.cta == a.cta and s.chance(0.7) else "shared::cluster"
    a.say(f"fence.proxy.async{s.random.choice(('', f'.{space}', f'.{space}'))};")
