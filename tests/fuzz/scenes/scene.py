"""Builder of a scene: its threads, objects and mbarriers."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Literal

from tests.fuzz.conditions import condition
from tests.fuzz.draft import Draft, Role

Near = Literal["warp", "cta", "cluster", "apart"]

WIDE_ENOUGH = {
    "warp": ("cta", "cta", "cluster", "gpu", "sys"),
    "cta": ("cta", "cta", "cluster", "gpu", "sys"),
    "cluster": ("cluster", "cluster", "gpu", "sys"),
    "apart": ("gpu", "gpu", "sys"),
}
"""Scopes that include both threads of a pair; the narrowest is the most common."""

MAP = (
    ".global .tensormap {name} = {{ global_address = {of}, elemtype = u32, rank = 1, global_dim = {{4}}, "
    "global_stride = {{}}, box_dim = {{4}}, element_stride = {{1}}, interleave_layout = none, swizzle_mode = none, "
    "swizzle_atomicity = 16B, fill_mode = zero }};"
)
OBJECTS = {
    "f": ".global .u32 f = 0;",
    "e": ".global .u32 e = 0;",
    "g": ".global .align 16 .u32 g[4] = {1, 2, 3, 4};",
    "h": ".global .align 16 .u32 h[4] = {5, 6, 7, 8};",
    "gm": MAP.format(name="gm", of="g"),
    "hm": MAP.format(name="hm", of="h"),
    "map": ".shared .align 128 .b8 map[128];",
    "s": ".shared .align 128 .u32 s[4];",
    "t": ".shared .align 128 .u32 t[4];",
    "v": ".shared .u32 v;",
}


@dataclass(slots=True)
class Bar:
    """An mbarrier of one CTA: the arrivals that complete a phase of it, and the phase that comes next."""

    name: str
    cta: int
    arrivals: int = 0
    phase: int = 0


@dataclass(slots=True)
class Actor:
    """A role: ``wide`` if it is four warps of one lane each, a warpgroup, whose first warp speaks for all."""

    name: str
    cta: int
    place: str
    wide: bool = False
    lines: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    registers: int = 0
    open: int = 0

    def result(self) -> str:
        """A fresh register whose value is shown."""
        name = f"r{self.registers}"
        self.registers += 1
        self.results.append(name)
        return name

    def predicate(self) -> str:
        """A fresh predicate."""
        self.registers += 1
        return f"%p{self.registers}"

    def say(self, *lines: str) -> None:
        """Appends statements."""
        self.lines += lines

    def once(self, *lines: str) -> None:
        """Appends statements that one thread of the role executes."""
        if self.wide:
            self.say("if (%warpid == 4) {", *lines, "}")
        else:
            self.say(*lines)


@dataclass(slots=True)
class Scene:
    """Threads that stand ``near`` each other, and what they share."""

    random: Random
    near: Near
    actors: list[Actor]
    used: set[str] = field(default_factory=set)
    bars: list[Bar] = field(default_factory=list)
    flags: int = 0
    barriers: int = 0

    def chance(self, probability: float) -> bool:
        """Whether something happens."""
        return self.random.random() < probability

    def scope(self) -> str:
        """A scope that includes all threads of the scene."""
        return self.random.choice(WIDE_ENOUGH[self.near])

    def bar(self, cta: int) -> Bar:
        """An mbarrier in the shared memory of a CTA."""
        made = Bar(f"b{len(self.bars)}", cta)
        self.bars.append(made)
        return made

    def use(self, name: str) -> str:
        """An object by name, which is declared from now on."""
        self.used.add(name)
        return name

    def at(self, actor: Actor, name: str, cta: int | None, index: int | None = None) -> tuple[str, str]:
        """The state space and the address by which a thread reaches an object (of a CTA, or global)."""
        self.use(name) if name in OBJECTS else None
        element = name if index is None else f"{name}[{index}]"
        if cta is None:
            return "global", f"[{element}]"
        if cta == actor.cta:
            return "shared", f"[{element}]"
        return "shared::cluster", f"[{element}@{cta}]"

    def mates(self, actor: Actor) -> list[Actor]:
        """The other threads of a CTA."""
        return [a for a in self.actors if a is not actor and a.cta == actor.cta]

    def draft(self, name: str, model: str) -> Draft:
        """The program: the mbarriers are set up, what stands in the threads follows, and no CTA leaves too early."""
        roles = []
        for actor in self.actors:
            lines = [*self._set_up(actor), *actor.lines, *["}"] * actor.open]
            if self.near == "cluster" and self._reaches_out():
                lines += ["barrier.cluster.arrive;", "barrier.cluster.wait;"]
            roles.append(Role(actor.name, actor.place, tuple(lines)))
        objects = [text for key, text in OBJECTS.items() if key in self.used or key in self._under_maps()]
        objects += [f".shared .align 8 .b64 {b.name};" for b in self.bars]
        shown = [f"{a.name}:{r}" for a in self.actors for r in a.results][:6]
        shown += [f"{key}[0]" for key in ("g", "h") if key in self.used or key in self._under_maps()]
        asked = condition(self.random, shown) if shown else ""
        return Draft(name, model, tuple(objects), tuple(roles), tuple(shown), asked)

    def _under_maps(self) -> set[str]:
        return {of for of in "gh" if f"{of}m" in self.used}

    def _reaches_out(self) -> bool:
        return any("shared::cluster" in line for a in self.actors for line in a.lines)

    def _set_up(self, actor: Actor) -> list[str]:
        own = [b for b in self.bars if b.cta == actor.cta]
        first = next(a for a in self.actors if a.cta == actor.cta) is actor
        lines = [f"mbarrier.init.shared::cta.b64 [{b.name}], {max(b.arrivals, 1)};" for b in own if first]
        if lines and actor.wide:
            lines = ["if (%warpid == 4) {", *lines, "}"]
        if self.near == "cluster":
            if self.bars and self.random.random() < 0.7:
                return [
                    *lines,
                    "fence.mbarrier_init.release.cluster;",
                    "barrier.cluster.arrive.relaxed;",
                    "barrier.cluster.wait;",
                ]
            return (
                [*lines, "barrier.cluster.arrive;", "barrier.cluster.wait;"] if self.bars or self._reaches_out() else []
            )
        if not own:
            return []
        if self.near == "warp":
            return [*lines, f"bar.warp.sync {self.everyone};"]
        return [*lines, "bar.sync 0;"] if self.mates(actor) or actor.wide else lines

    @property
    def everyone(self) -> int:
        """The mask of the lanes of a warp."""
        return (1 << len(self.actors)) - 1
