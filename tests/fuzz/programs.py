"""Generator of random small programs, as texts of litmus tests.

Programs are reproducible (the same ``Random``, the same program) and come in families, by what they speak of. Half are
without a plan, fragments of idioms (``themes``, ``lives``); the others are right by construction and then damaged once
or twice (``scenes``, ``mbarrier_programs``, ``maps``, ``shapes``, ``spinning``, ``counted``), for programs that nobody
planned are racy at once. A difference between two engines is a file as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from mcheck.base.errors import McheckError
from mcheck.frontend.litmus import parse
from tests.fuzz.collectives import collectives
from tests.fuzz.counted import counted
from tests.fuzz.damage import mutate
from tests.fuzz.draft import Draft
from tests.fuzz.lives import lives
from tests.fuzz.maps import changed_map
from tests.fuzz.mbarrier_programs import mbarrier_only
from tests.fuzz.meetings import meetings
from tests.fuzz.overlaps import overlaps
from tests.fuzz.polled import polled
from tests.fuzz.scenes.handoffs import scene
from tests.fuzz.scenes.scene import Near
from tests.fuzz.shapes import shape
from tests.fuzz.spinning import spinning
from tests.fuzz.strong_copies import strong_copies
from tests.fuzz.themes import themed
from tests.fuzz.unplanned import unplanned

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Generator = Callable[[Random], Draft]


def _themes(*themes: str) -> Generator:
    return lambda random: themed(random, *themes)


def _scenes(name: str, near: Sequence[Near], *wanted: str) -> Generator:
    return partial(scene, name=name, near=near, wanted=wanted)


EVERYWHERE: tuple[Near, ...] = ("warp", "cta", "cluster", "apart")

FAMILIES: Mapping[str, tuple[tuple[int, Generator], ...]] = {
    "plain": (
        (3, _themes("classic", "values", "widths", "control", "branches")),
        (3, shape),
        (2, _scenes("plain", EVERYWHERE, "load", "store", "atomic")),
    ),
    "proxies": ((1, _themes("proxies")),),
    "barriers": (
        (2, _themes("barriers", "gathering")),
        (1, _scenes("barriers", ("warp", "cta", "cta"), "load", "store")),
    ),
    "mbarrier": ((1, mbarrier_only),),
    "phases": ((1, _themes("mbarrier", "divided", "phases")),),
    "groups": ((1, _themes("groups")), (2, _scenes("groups", EVERYWHERE, "cp.async"))),
    "bulk": (
        (1, _themes("bulk", "stores")),
        (2, _scenes("bulk", EVERYWHERE, "fill")),
        (2, _scenes("bulk", EVERYWHERE, "drain", "taken")),
    ),
    "strong": ((1, strong_copies),),
    "cluster": (
        (1, _themes("cluster")),
        (2, _scenes("cluster", ("cluster",), "across")),
        (2, _scenes("cluster", ("cluster",), "sent")),
        (1, _scenes("cluster", ("cluster",), "fill", "load", "store")),
    ),
    "tensormap": ((1, changed_map),),
    "wgmma": ((1, _scenes("wgmma", ("cta", "cta", "cluster"), "wgmma")),),
    "spinning": ((1, spinning),),
    "counted": ((1, counted),),
    "lives": ((1, lives),),
    "meetings": ((1, meetings),),
    "collectives": ((1, collectives),),
    "unplanned": ((1, unplanned),),
    "polled": ((1, polled),),
    "overlaps": ((1, overlaps),),
}
"""What a family is made of, each with its weight."""
ASKED_FOR = ("spinning", "counted", "lives", "meetings", "collectives", "unplanned", "polled", "overlaps")
"""Families that only come where they are named: so item k of a seed stays what it was before there were these."""
USUAL = tuple(name for name in FAMILIES if name not in ASKED_FOR)


def draft(random: Random, families: Sequence[str] = ()) -> Draft:
    """A random program of one of the families, or of any usual one: mostly with a mistake or two."""
    name = random.choice(list(families or USUAL))
    parts = FAMILIES[name]
    made = random.choices([g for _, g in parts], [w for w, _ in parts])[0](random)
    if made.name.startswith("random-"):
        return made
    mistakes = random.choices((0, 1, 2), (3, 6, 2))[0]
    if mistakes:
        for _ in range(10):
            changed = mutate(random, made, mistakes)
            if legal(changed):
                return changed
    return made


def legal(made: Draft) -> bool:
    """Whether the text can be read: a damaged one need not be."""
    try:
        parse(made.text(), "draft.litmus")
    except McheckError:
        return False
    return True


def program(random: Random, families: Sequence[str] = ()) -> str:
    """The text of a random program."""
    return draft(random, families).text()


def programs(families: Sequence[str] = ()) -> SearchStrategy[str]:
    """Random programs as a Hypothesis strategy; failing ones are shrunk through the choices of the generator."""
    from hypothesis import strategies

    return strategies.randoms(use_true_random=False).map(lambda random: program(random, families))
