"""Where the threads of a sketch with any number of CTAs are: in those that are alike, or in one of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcheck.base.records import dataclass, replace
from mcheck.frontend.litmus.alike_ctas.forms import LinearForms
from mcheck.frontend.litmus.binding import Role
from mcheck.frontend.litmus.placement import KEYS, enumerate_threads
from mcheck.frontend.litmus.statements import Body
from mcheck.frontend.litmus.thread_values import special_registers
from mcheck.ir.cta_family import CTA, NUMBER, Linear, NotAlike, variable


@dataclass(frozen=True, slots=True)
class FamilyThread:
    """A thread of one CTA: ``cta`` is its number, ``None`` in those that are alike."""

    number: int
    cta: int | None
    specials: Mapping[str, Linear]
    body: Body


def find_places(roles: Sequence[Role], parameter: str) -> tuple[int, Linear]:
    """The number of the first CTA that is alike, and the one behind the last. Raises ``NotAlike``."""
    found: set[tuple[int, Linear]] = set()
    for role in roles:
        place = role.placement
        if {"cluster", "gpu"} & place.ranges.keys():
            raise NotAlike("CTAs in clusters, or on several GPUs", place.span)
        for key, high in place.ends.items():
            end = LinearForms({}, 0, 1).linear(high, {parameter: variable(NUMBER)})
            if key != "cta" or end is None:
                raise NotAlike("a place depends on the number otherwise than by `cta A..B`", place.span)
            found.add((place.ranges[key][0], end))
    if len(found) != 1:
        raise NotAlike("roles are in different ranges of CTAs")
    first, end = found.pop()
    for role in roles:
        if not role.placement.ends and max(role.placement.ranges.get("cta", (0,))) >= first:
            raise NotAlike("a role is in some of the CTAs that are alike", role.placement.span)
    return first, end


def threads_of(roles: Sequence[Role], first: int, end: Linear) -> list[FamilyThread]:
    """The threads of one of the CTAs that are alike, and of all others."""
    placements = [role.placement for role in roles]
    two = [
        replace(p, ranges={k: range(first, first + 2) if k in p.ends else p.ranges[k] for k in KEYS if k in p.ranges})
        for p in placements
    ]
    grid = enumerate_threads(two)
    out: list[FamilyThread] = []
    for role, places in zip(roles, grid.threads, strict=True):
        for place in places:
            number = place.cta.cluster  # without clusters every CTA is one of its own
            if number > first:
                continue
            specials = {name: Linear(value) for name, value in special_registers(place, grid).items()}
            here = variable(CTA) if role.placement.ends else Linear(number)
            specials |= {"ctaid.x": here, "clusterid.x": here, "nctaid.x": end}
            cta = None if role.placement.ends else number
            out.append(FamilyThread(len(out), cta, specials, role.body))
    return out
