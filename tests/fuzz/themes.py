"""Generator of random programs from fragments of one theme, each slightly mutated.

Threads over CTAs and clusters execute fragments of common idioms (message passing in several strengths and widths,
barriers, cp.async with groups, bulk copies with groups or an mbarrier, reductions, proxies, branches, loops), and
statements are left out now and then.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from tests.fuzz.body import Body
from tests.fuzz.conditions import condition
from tests.fuzz.draft import MODELS, Draft, Role
from tests.fuzz.fragments.barriers import gathering, meet
from tests.fuzz.fragments.control import branch, divided, locked, loop, nested
from tests.fuzz.fragments.copies import bulk_load, bulk_store, cp_async, tail
from tests.fuzz.fragments.mbarriers import arriving, published, rounds, waiting
from tests.fuzz.fragments.plain import arithmetic, atomic, fence, load, remote, shared, store, width
from tests.fuzz.fragments.proxies import other_proxy

Fragment = Callable[[Body], None]

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


def themed(random: Random, *themes: str) -> Draft:
    """A random program of one of the themes, or of any."""
    names = list(themes or THEMES)
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
    return _draft(random, bodies, theme)


def _set_up(b: Body) -> None:
    """The first thread of a CTA initialises the mbarrier, and all of the CTA (or cluster) wait for that."""
    if b.thread == 0 or (b.clustered and b.thread == 1):
        arrivals = b.random.choices((1, 2, 3), (5, 4, 1))[0]
        b.lines.append(f"mbarrier.init.shared::cta.b64 [bar], {arrivals};")
    if b.clustered:
        b.lines += ["fence.mbarrier_init.release.cluster;", "barrier.cluster.arrive.relaxed;", "barrier.cluster.wait;"]
    elif b.chance(0.97):
        b.lines.append("bar.sync 0;")


def _draft(random: Random, bodies: list[Body], theme: str) -> Draft:
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
    model = random.choice(MODELS)
    objects = tuple(
        f"{name} = 0;" if dialect and name in ("x", "y", "z") else declaration
        for name, declaration in OBJECTS.items()
        if name in used
    )
    roles = tuple(
        Role(f"P{b.thread}", f"cluster 0, cta {b.cta}" if b.clustered else f"cta {b.cta}", tuple(b.lines))
        for b in bodies
    )
    shown = [f"P{b.thread}:{r}" for b in bodies for r in b.results if re.search(rf"\b{r}\b", "\n".join(b.lines))][:6]
    shown += [name for name in ("x", "y") if name in used][: max(0, 7 - len(shown))]
    if "out" in used:
        shown.append("out[0]")
    if "w" in used:
        shown.append("w")
    asked = condition(random, shown) if shown else ""
    return Draft(f"random-{theme}", model, objects, roles, tuple(shown), asked)
