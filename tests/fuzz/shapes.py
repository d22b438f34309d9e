"""Generator of classic litmus shapes over words, atomics and mbarrier polls, guarding a possible race.

Each thread of SB, MP, LB, IRIW, WRC and the like does its accesses with random strength, scope and instruction, failing
compare-and-swaps and one-shot polls among them; with the outcome that the shape is about, plain accesses conflict. An
engine that interleaves, or takes the newest value, sees no race there.
"""

from __future__ import annotations

from random import Random

from tests.fuzz.conditions import condition
from tests.fuzz.draft import MODELS, Draft, Role

SHAPES: dict[str, tuple[tuple[str, ...], ...]] = {
    "SB": (("Wx", "Ry"), ("Wy", "Rx")),
    "MP": (("Wx", "Wy"), ("Ry", "Rx")),
    "LB": (("Rx", "Wy"), ("Ry", "Wx")),
    "2+2W": (("Wx", "Wy"), ("Wy", "Wx")),
    "R": (("Wx", "Wy"), ("Wy", "Rx")),
    "S": (("Wx", "Wy"), ("Ry", "Wx")),
    "CoRR": (("Wx",), ("Rx", "Rx")),
    "WRC": (("Wx",), ("Rx", "Wy"), ("Ry", "Rx")),
    "RWC": (("Wx",), ("Rx", "Ry"), ("Wy", "Rx")),
    "ISA2": (("Wx", "Wy"), ("Ry", "Wz"), ("Rz", "Rx")),
    "3.SB": (("Wx", "Ry"), ("Wy", "Rz"), ("Wz", "Rx")),
    "IRIW": (("Wx",), ("Wy",), ("Rx", "Ry"), ("Ry", "Rx")),
}


def shape(random: Random) -> Draft:
    """One shape, its locations words or mbarriers."""
    name = random.choice(list(SHAPES))
    threads = SHAPES[name]
    letters = sorted({step[1] for steps in threads for step in steps})
    bars = {
        x
        for x in letters
        if random.random() < 0.25 and name in ("SB", "MP", "IRIW", "WRC", "RWC", "3.SB", "CoRR", "ISA2")
    }
    together = bool(bars) or random.random() < 0.4
    writer = next((k for k, steps in enumerate(threads) if "z" not in letters and len(steps) > 1), None)
    roles = []
    shown: list[str] = []
    for k, steps in enumerate(threads):
        lines: list[str] = []
        if bars:
            if k == 0:
                lines += [f"mbarrier.init.shared::cta.b64 [b{x}], 1;" for x in sorted(bars)]
            lines.append("bar.sync 0;")
        seen: list[str] = []
        for n, step in enumerate(steps):
            if n and random.random() < 0.3:
                lines.append(_fence(random, together))
            lines += _step(random, step, seen, bar=step[1] in bars, together=together)
        shown += [f"P{k}:{r}" for r in seen]
        if seen and random.random() < 0.75:
            lines += _guarded(random, seen, k)
        elif k == writer and random.random() < 0.5:
            lines.append("st.global.u32 [w], 1;")
        roles.append(
            Role(f"P{k}", "cta 0" if together else f"cta {k % 2 if random.random() < 0.3 else k}", tuple(lines))
        )
    objects = [f".shared .align 8 .b64 b{x};" for x in sorted(bars)]
    objects += [f".global .u32 {x} = 0;" for x in letters if x not in bars]
    objects.append(".global .u32 w = 0;")
    return Draft(
        name, random.choice(MODELS), tuple(objects), tuple(roles), tuple(shown), condition(random, shown or ["w"])
    )


def _scope(random: Random, together: bool) -> str:
    return random.choice(("cta", "gpu", "gpu", "sys") if together else ("gpu", "gpu", "gpu", "sys", "cta"))


def _fence(random: Random, together: bool) -> str:
    sem = random.choice(("sc", "sc", "acq_rel", "acquire", "release"))
    return f"fence.{sem}.{_scope(random, together)};"


def _step(random: Random, step: str, seen: list[str], *, bar: bool, together: bool) -> list[str]:
    place = step[1]
    r = f"r{len(seen)}"
    scope = _scope(random, together)
    if bar and step[0] == "W":
        sem = random.choice(("", "", ".release.cta", ".relaxed.cta"))
        return [f"mbarrier.arrive{sem}.shared::cta.b64 _, [b{place}];"]
    if step[0] == "W":
        match random.choice(("store", "store", "exch", "red", "cas")):
            case "store":
                return [f"st.{random.choice(('relaxed', 'release'))}.{scope}.global.u32 [{place}], 1;"]
            case "exch":
                return [f"atom.{_sem(random)}.{scope}.global.exch.b32 r9, [{place}], 1;"]
            case "cas":
                return [f"atom.{_sem(random)}.{scope}.global.cas.b32 r9, [{place}], 0, 1;"]
            case _:
                return [f"red.{random.choice(('relaxed', 'release'))}.{scope}.global.add.u32 [{place}], 1;"]
    seen.append(r)
    if bar:
        sem = random.choice(("", "", ".acquire.cta", ".relaxed.cta"))
        which = random.choice(("test_wait", "test_wait", "try_wait"))
        return [
            f"mbarrier.{which}.parity{sem}.shared::cta.b64 %p{r[1:]}, [b{place}], 0;",
            f"selp.u32 {r}, 1, 0, %p{r[1:]};",
        ]
    match random.choice(("load", "load", "load", "cas", "add")):
        case "cas":  # fails where the location holds 0, and writes what is there where it holds 1
            return [f"atom.{_sem(random)}.{scope}.global.cas.b32 {r}, [{place}], 1, 1;"]
        case "add":
            return [f"atom.{_sem(random)}.{scope}.global.add.u32 {r}, [{place}], 0;"]
        case _:
            return [f"ld.{random.choice(('relaxed', 'acquire'))}.{scope}.global.u32 {r}, [{place}];"]


def _sem(random: Random) -> str:
    return random.choice(("relaxed", "acquire", "release", "acq_rel", "acq_rel"))


def _guarded(random: Random, seen: list[str], thread: int) -> list[str]:
    access = random.choice(
        (f"st.global.u32 [w], {thread + 1};", f"st.global.u32 [w], {thread + 1};", "ld.global.u32 r8, [w];")
    )
    tests = [f"if ({r} == {random.randint(0, 1)}) {{" for r in seen]
    return [*tests, access, *["}"] * len(tests)]
