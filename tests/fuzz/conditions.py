"""Generator of random final conditions."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random


def condition(random: Random, shown: Sequence[str]) -> str:
    """A condition on one to three of the terms; mostly one that asks whether a state can be reached."""
    terms = random.sample(shown, min(len(shown), random.randint(1, 3)))
    parts = [f"{t} {random.choices(('==', '!=', '<'), (7, 1, 1))[0]} {random.randint(0, 3)}" for t in terms]
    kind = random.choices(("exists", "~exists", "forall"), (6, 1, 2))[0]
    joint = random.choice((" /\\ ", " /\\ ", " \\/ "))
    return f"{kind} ({joint.join(parts)})"
