"""Generator of programs with counted and uncounted barriers, used by some warps of a CTA while others exit.

A plan says who meets in which round, with a count or without one, who only arrives, who writes before and reads behind
it. So a program is right until it is damaged: without a count all wait that have not exited, with one as many as it
says, and the rounds of one barrier follow each other as the arrivals come.
"""

from __future__ import annotations

from random import Random

from tests.fuzz.conditions import condition
from tests.fuzz.draft import MODELS, Draft, Role

WARP = 32
MOST = 4


def counted(random: Random) -> Draft:
    """Two to four threads, one to three rounds."""
    count = random.choices((2, 3, 4), (3, 5, 2))[0]
    threads: list[list[str]] = [[] for _ in range(count)]
    registers: list[list[str]] = [[] for _ in range(count)]
    here = list(range(count))
    for number in range(random.choices((1, 2, 3), (2, 5, 2))[0]):
        if len(here) > 2 and number and random.random() < 0.35:
            gone = random.choice(here)
            here.remove(gone)
            threads[gone].append("exit;")
        _round(random, threads, registers, here, number)
    shown = [f"P{k}:{r}" for k, found in enumerate(registers) for r in found][:6]
    roles = tuple(Role(f"P{k}", "cta 0", tuple(lines)) for k, lines in enumerate(threads))
    objects = (".shared .u32 s;", ".global .u32 x = 0;")
    return Draft("counted", random.choice(MODELS), objects, roles, tuple(shown), condition(random, shown or ["x"]))


def _round(random: Random, threads: list[list[str]], registers: list[list[str]], here: list[int], number: int) -> None:
    """Some of the threads that are here meet: the counts of all who do are the same, or the first ones say none."""
    everybody = random.random() < 0.5
    members = list(here) if everybody else random.sample(here, random.randint(2, len(here)))
    given = not everybody or len(members) < len(here) or random.random() < 0.6
    barrier = random.choices((1, 2), (4, 1))[0]
    reduces = random.random() < 0.12
    waiting = random.sample(members, random.randint(1, len(members))) if given and not reduces else members
    writer = random.choice(members)
    place, space = random.choice((("s", "shared"), ("x", "global")))
    for k in members:
        lines = threads[k]
        if k == writer:
            lines.append(f"st.{space}.u32 [{place}], {number + 1};")
        # where all are expected anyway, one says so and another does not
        says = given and not (everybody and k in waiting and random.random() < 0.35)
        size = f", {WARP * len(members)}" if says else ""
        if reduces:
            r = f"r{len(registers[k])}"
            lines += [f"setp.eq.u32 %p{number}, {random.randint(0, 1)}, 0;"]
            lines.append(f"bar.red.popc.u32 {r}, {barrier}{size}, %p{number};")
            registers[k].append(r)
        else:
            name = random.choice(("bar", "bar", "barrier"))
            lines.append(f"{name}.{'sync' if k in waiting else 'arrive'} {barrier}{size};")
    for k in waiting:
        if k != writer and len(registers[k]) < MOST and random.random() < 0.7:
            r = f"r{len(registers[k])}"
            threads[k].append(f"ld.{space}.u32 {r}, [{place}];")
            registers[k].append(r)
