"""Generator of accesses of several sizes, synchronous and asynchronous, to the same bytes.

Two threads take turns at a barrier. In its turn a thread writes a part of sixteen bytes, by whatever can write them, or
reads a part, so that what it has read decides whether the program ends. Now and then a barrier is missing.
"""

from __future__ import annotations

from random import Random

from tests.fuzz.draft import MODELS, Draft, Role

_BITS = {"u8": 8, "u16": 16, "u32": 32, "u64": 64}
_SPACES = {"y": "global", "s": "shared"}
_STRENGTHS = ("", "", "weak.", "relaxed.gpu.", "relaxed.gpu.", "volatile.")
_ASYNC = {
    "y": (
        "cp.async.bulk.global.shared::cta.bulk_group [y], [t], 16;",
        "cp.async.bulk.global.shared::cta.bulk_group [y], [s], 16;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.and.b64 [y], [t], 16;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.or.b32 [y], [s], 16;",
    ),
    "s": ("cp.async.ca.shared.global [s], [z], 16;", "cp.async.ca.shared.global [s + 4], [z + 4], 4;"),
}


def overlaps(random: Random) -> Draft:
    """Two threads of a CTA, in different warps, that take from four to seven turns."""
    lines: tuple[list[str], list[str]] = ([], [])
    shown: list[str] = []
    name = random.choice(("y", "y", "s"))
    for turn in range(random.randint(4, 7)):
        who = random.randrange(2)
        if turn < 2 or random.random() < 0.6:
            lines[who].extend(_write(random, name))
        else:
            lines[who].extend(_read(random, name, f"r{turn}"))
            shown.append(f"P{who}:r{turn}")
        if random.random() < 0.95:
            for mine in lines:
                mine.append("bar.sync 0;")
    objects = (
        f".global .align 16 .u32 y[4] = {{{', '.join(random.choice('0012') for _ in range(4))}}};",
        f".global .align 16 .u32 z[4] = {{{', '.join(random.choice('0012') for _ in range(4))}}};",
        ".shared .align 16 .u32 s[4];",
        ".shared .align 16 .u32 t[4];",
    )
    begin = ["st.shared.v4.u32 [s], {0, 0, 0, 0};", "st.shared.v4.u32 [t], {0, 1, 0, 1};", "fence.proxy.async;"]
    roles = tuple(
        Role(f"P{k}", f"cta 0, warp {k}, lane 0", (*(begin if k == 0 else ()), "bar.sync 0;", *mine))
        for k, mine in enumerate(lines)
    )
    return Draft("overlaps", random.choice(MODELS), objects, roles, tuple(shown))


def _place(random: Random, name: str, bits: int) -> str:
    at = random.randrange(0, 16, bits // 8) if bits < 64 else random.choice((0, 0, 8))
    return f"[{name} + {at}]" if random.random() < 0.3 else f"[{name} + {at & 8}]"


def _write(random: Random, name: str) -> list[str]:
    space, kind = _SPACES[name], random.random()
    if kind < 0.25:
        copy = random.choice(_ASYNC[name])
        wait = ["cp.async.wait_all;"] if name == "s" else ["cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 0;"]
        return ["fence.proxy.async;", copy, *wait, "fence.proxy.async;"]
    if kind < 0.3 and name == "s":
        return ["st.bulk.weak.shared::cta [s], 16, 0;"]
    if kind < 0.45:
        bits = random.choice((32, 32, 64))
        what = random.choice(("add.u", "and.b", "exch.b"))
        return [
            f"atom.relaxed.gpu.{space}.{what}{bits} %rd{bits}, {_place(random, name, bits)}, {random.randrange(3)};"
        ]
    if kind < 0.55:
        return [f"st.{space}.v4.u32 [{name}], {{{', '.join(random.choice('0012') for _ in range(4))}}};"]
    type_ = random.choice(("u8", "u16", "u32", "u32", "u32", "u64"))
    strength = random.choice(_STRENGTHS)
    return [f"st.{strength}{space}.{type_} {_place(random, name, _BITS[type_])}, {random.randrange(3)};"]


def _read(random: Random, name: str, register: str) -> list[str]:
    type_ = random.choice(("u8", "u16", "u32", "u32", "u32", "u64"))
    strength = random.choice(_STRENGTHS)
    place, value = _place(random, name, _BITS[type_]), random.randrange(3)
    load = f"ld.{strength}{_SPACES[name]}.{type_} {register}, {place}"
    if random.random() < 0.4 and strength.startswith("relaxed"):
        return [f"await {load} == {value};"]
    return [f"{load};", f"if ({register} == {value}) {{ bar.sync 1, 96; }}"]
