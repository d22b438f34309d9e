"""Fragments: accesses through other addresses and proxies, and their fences."""

from __future__ import annotations

from tests.fuzz.body import Body
from tests.fuzz.fragments.plain import load, store


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
