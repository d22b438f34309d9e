"""Classic shapes between two GPUs, with fences, releases and acquires of every scope in every thread: litmus tests.

The shapes are MP, S, R, LB, SB, 2+2W, and IRIW with a writer on each GPU or with both on the first. A thread's accesses
are relaxed ones of scope sys or gpu, or they release and acquire; the writers of IRIW are relaxed ones of scope sys.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

SCOPES = ("cta", "gpu", "sys")
FENCES = ("", *(f"fence.{sem}.{scope}" for sem in ("acq_rel", "sc") for scope in SCOPES))


class Kind(NamedTuple):
    """The scope of a thread's accesses, and what is between them; ``ra``: nothing, but they release and acquire."""

    scope: str
    between: str


KINDS = (
    *(Kind(scope, fence) for scope in ("sys", "gpu") for fence in FENCES),
    *(Kind(scope, "ra") for scope in reversed(SCOPES)),
)
Access = tuple[str, str, int]
"""W, location, value; or R, location, number of the register."""
PAIRS: dict[str, tuple[tuple[Access, ...], tuple[Access, ...], str]] = {
    "MP": ((("W", "x", 1), ("W", "y", 1)), (("R", "y", 0), ("R", "x", 1)), "P1:r0 == 1 /\\ P1:r1 == 0"),
    "LB": ((("R", "x", 0), ("W", "y", 1)), (("R", "y", 0), ("W", "x", 1)), "P0:r0 == 1 /\\ P1:r0 == 1"),
    "SB": ((("W", "x", 1), ("R", "y", 0)), (("W", "y", 1), ("R", "x", 0)), "P0:r0 == 0 /\\ P1:r0 == 0"),
    "S": ((("W", "x", 2), ("W", "y", 1)), (("R", "y", 0), ("W", "x", 1)), "P1:r0 == 1 /\\ x == 2"),
    "R": ((("W", "x", 1), ("W", "y", 1)), (("W", "y", 2), ("R", "x", 0)), "y == 2 /\\ P1:r0 == 0"),
    "2+2W": ((("W", "x", 2), ("W", "y", 1)), (("W", "y", 2), ("W", "x", 1)), "x == 2 /\\ y == 2"),
}
ALIKE = ("LB", "SB", "2+2W")
"""Shapes whose two threads may be exchanged."""
IRIW_READERS = ((("R", "x", 0), ("R", "y", 1)), (("R", "y", 0), ("R", "x", 1)))
IRIW_WRITERS = ((("W", "x", 1),), (("W", "y", 1),))
IRIW_SEEN = "P2:r0 == 1 /\\ P2:r1 == 0 /\\ P3:r0 == 1 /\\ P3:r1 == 0"
IRIW_PLACES = {"": (0, 1, 0, 1), "+readers-apart": (0, 0, 1, 1)}


def pair_families() -> Iterator[tuple[str, str]]:
    """The tests, name and text; first those whose threads are alike."""
    for left, right in sorted(product(KINDS, repeat=2), key=lambda kinds: kinds[0] != kinds[1]):
        turned = KINDS.index(left) > KINDS.index(right)
        for shape, (first, second, condition) in PAIRS.items():
            if not (turned and shape in ALIKE):
                yield write(named(shape, left, right), (code(first, left), code(second, right)), (0, 1), condition)
        if not turned:
            readers = [code(r, kind) for r, kind in zip(IRIW_READERS, (left, right), strict=True)]
            codes = (*(code(w, KINDS[0]) for w in IRIW_WRITERS), *readers)
            for where, gpus in IRIW_PLACES.items():
                yield write(named("IRIW" + where, left, right), codes, gpus, IRIW_SEEN)


def named(shape: str, *kinds: Kind) -> str:
    """The name of a test."""
    return "+".join((shape, *("-".join(filter(None, (kind.scope, kind.between))) for kind in kinds)))


def code(accesses: tuple[Access, ...], kind: Kind) -> list[str]:
    """The instructions of a thread."""
    store, load = (f"st.relaxed.{kind.scope}", f"ld.relaxed.{kind.scope}")
    if kind.between == "ra":
        store, load = f"st.release.{kind.scope}", f"ld.acquire.{kind.scope}"
    lines = [f"{store} {x}, {n}" if access == "W" else f"{load} r{n}, {x}" for access, x, n in accesses]
    return [*lines[:1], *([kind.between] if kind.between in FENCES[1:] else []), *lines[1:]]


def write(name: str, codes: tuple[list[str], ...], gpus: tuple[int, ...], condition: str) -> tuple[str, str]:
    """A test in the table form; each thread has a CTA of its own."""
    seen: dict[int, int] = {}
    heads = []
    for thread, gpu in enumerate(gpus):
        heads.append(f"P{thread}@cta {seen.get(gpu, 0)},gpu {gpu}")
        seen[gpu] = seen.get(gpu, 0) + 1
    rows = [[c[n] if n < len(c) else "" for c in codes] for n in range(max(map(len, codes)))]
    table = "".join(" " + " | ".join(row) + " ;\n" for row in (heads, *rows))
    return name, f'PTX {name}\n"Generated."\n{{ x = 0; y = 0; }}\n{table}exists ({condition})\n'
