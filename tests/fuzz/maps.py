"""Generator of tensor map updates by one thread, used by another: the tensormap proxy, its fences and their scopes."""

from __future__ import annotations

from random import Random

from tests.fuzz.draft import MODELS, Draft
from tests.fuzz.scenes.accesses import COMPLETE, announce
from tests.fuzz.scenes.handing import HANDS, wait
from tests.fuzz.scenes.scene import Actor, Near, Scene


def changed_map(random: Random) -> Draft:
    """A map that is replaced, rewritten or copied, published with a release and an acquire, and used."""
    near: Near = random.choice(("cta", "cta", "cluster", "apart"))
    ctas = (0, 0) if near == "cta" else (0, 1)
    actors = [
        Actor(
            f"P{k}", c, f"cluster 0, cta {c}, warp {k}, lane 0" if near == "cluster" else f"cta {c}, warp {k}, lane 0"
        )
        for k, c in enumerate(ctas)
    ]
    s = Scene(random, near, actors)
    a, b = (actors[0], actors[1]) if random.random() < 0.8 else (actors[0], actors[0])
    for name in ("g", "h", "gm", "s"):
        s.use(name)
    if random.random() < 0.2:
        _use(s, a)
    scope = s.scope()
    released = False
    match random.choice(("replace", "replace", "loaded", "copied")):
        case "replace":
            a.say("mov.u64 %rd7, h;", "tensormap.replace.tile.global_address.global.b1024.b64 [gm], %rd7;")
        case "loaded":
            s.use("hm")
            _fetch(s, a, "hm")
            a.say("cp.async.bulk.global.shared::cta.bulk_group [gm], [map], 128;")
            a.say("cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 0;")
        case _:
            if s.chance(0.9):
                _fetch(s, a, "gm")
            s.use("map")
            a.say("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [map], h;")
            a.say(
                "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic."
                f"release.{scope}.sync.aligned [gm], [map], 128;"
            )
            released = True
    if not released:
        a.say(f"fence.proxy.tensormap::generic.release.{scope};")
    if b is not a:
        random.choice(HANDS[near])(s, a, b, True)
    b.say(f"fence.proxy.tensormap::generic.acquire.{s.scope()} [gm], 128;")
    _use(s, b)
    if random.random() < 0.5:
        b.say(f"ld.shared.u32 {b.result()}, [s[0]];")
    return s.draft("maps", random.choice(MODELS))


def _fetch(s: Scene, a: Actor, name: str) -> None:
    """A map is brought to shared memory, where it may be changed."""
    bar = s.bar(a.cta)
    announce(s, a, bar, 128)
    a.say(f"cp.async.bulk.shared::cluster.global.{COMPLETE} [{s.use('map')}], [{name}], 128, [{bar.name}];")
    wait(s, a, bar, last=False)


def _use(s: Scene, a: Actor) -> None:
    if s.chance(0.75):
        bar = s.bar(a.cta)
        announce(s, a, bar)
        space = "shared::cluster" if s.near == "cluster" else "shared::cta"
        a.say(f"cp.async.bulk.tensor.1d.{space}.global.tile.{COMPLETE} [s], [gm, {{0}}], [{bar.name}];")
        wait(s, a, bar, False)
    else:
        a.say("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [gm, {0}], [s];")
        a.say("cp.async.bulk.commit_group;", f"cp.async.bulk.wait_group{s.random.choice(('', '.read'))} 0;")
