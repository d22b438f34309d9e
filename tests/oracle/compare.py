"""Random programs about mbarriers put to the oracle and to an engine.

    python -m tests.oracle.compare [--count 2000] [--seed 1] [--engine explicit]

Compared are the final registers, the codes of misuse that the oracle knows, races and deadlocks. Exit status 1 on a
difference.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from random import Random

from mcheck.frontend.litmus import parse
from tests.fuzz.damage import mutate
from tests.fuzz.differential import model_of, run_engine
from tests.fuzz.draft import Draft
from tests.fuzz.mbarrier_programs import mbarrier_only
from tests.fuzz.programs import legal
from tests.oracle.machine import Found, Machine
from tests.oracle.reading import NotForThis, steps

LIMIT = 20.0
"""Seconds for an answer."""
KNOWN = frozenset({"UB201", "UB202", "UB205", "UB206", "UB207", "UB210", "UB211", "UB217"})
"""Codes of misuse that both judge; UB212 and UB216 are about what was meant."""


@dataclass(frozen=True, slots=True)
class Told:
    """What an engine says, in the oracle's terms: ``finals`` are ``None`` where it does not list the states, and a
    value where it means nothing.
    """

    finals: frozenset[tuple[tuple[str, int | None], ...]] | None
    codes: frozenset[str]
    race: bool
    dead: bool


def programs(seed: str, count: int) -> list[Draft]:
    """Random programs that the oracle can read."""
    found: list[Draft] = []
    number = 0
    while len(found) < count:
        random = Random(f"{seed}:{number}")
        number += 1
        made = mbarrier_only(random)
        made = mutate(random, made, random.choice((0, 1, 1, 2)))
        if any(".relaxed" in line and "_tx." not in line for role in made.roles for line in role.lines):
            continue
        try:
            code = [steps(role.lines) for role in made.roles]
        except (NotForThis, IndexError):
            continue
        apart = any(role.place != "cta 0" for role in made.roles)
        if not apart and any(step.bar for thread in code for step in thread) and legal(made):
            found.append(made)
    return found


def by_oracle(made: Draft) -> Found:
    """All that the oracle finds in a program."""
    code = {role.name: steps(role.lines) for role in made.roles}
    shown = tuple((role, register) for role, _, register in (term.partition(":") for term in made.shown))
    return Machine(code, shown).run()


def by_engine(made: Draft, engine: str) -> Told | None:
    """What an engine finds; nothing if it leaves something open."""
    heard = run_engine(engine, parse(made.text(), "oracle.litmus"), model_of("ptx-9.0"), LIMIT)
    if heard.codes is None or heard.kinds is None:
        return None
    order = {label: k for k, label in enumerate(made.shown)}
    finals = None if heard.states is None else frozenset(
        tuple(
            (label, value if isinstance(value, int) else None)
            for label, value in sorted(state, key=lambda term: order[term[0]])
        )
        for state in heard.states
    )  # fmt: skip
    return Told(finals, heard.codes & KNOWN, "race" in heard.kinds, "deadlock" in heard.kinds)


def differences(made: Draft, found: Found, told: Told) -> list[str]:
    """In what the two differ. With two mbarriers interleavings are some of the executions only.

    Where nothing orders an operation after the initialisation (UB201) an engine may go on as if the object were there,
    or not: then both have to call it undefined, and nothing else is compared.
    """
    if "UB201" in found.codes | told.codes:
        return [] if found.codes and told.codes else [f"undefined: oracle {found.codes}, engine {told.codes}"]
    some = len({s.bar for role in made.roles for s in steps(role.lines) if s.bar}) > 1
    out = []
    missing, extra = found.codes - told.codes, told.codes - found.codes
    if missing or (extra and not some):
        out.append(f"codes: only the oracle {sorted(missing)}, only the engine {sorted(extra)}")
    if found.race != told.race and (found.race or not some):
        out.append(f"race: oracle {found.race}, engine {told.race}")
    if (found.dead and not told.dead) or (told.dead and not some and not found.dead and not found.dead_beside_misuse):
        out.append(f"deadlock: oracle {found.dead}, engine {told.dead}")
    if made.shown and told.finals is not None and not found.race:
        lost, new = found.finals - told.finals, told.finals - found.finals
        if lost or (new and not some):
            out.append(f"states: only the oracle {sorted(lost, key=str)}, only the engine {sorted(new, key=str)}")
    return out


def compare(seed: str, count: int, engine: str) -> tuple[Counter[str], list[tuple[Draft, list[str]]]]:
    """What became of the programs, and those that differ."""
    tally: Counter[str] = Counter()
    different = []
    for made in programs(seed, count):
        try:
            found = by_oracle(made)
        except NotForThis as why:
            tally[f"not for the oracle: {why}"] += 1
            continue
        told = by_engine(made, engine)
        if told is None:
            tally["left open by the engine"] += 1
            continue
        tally["compared"] += 1
        tally["compared, states too"] += told.finals is not None
        tally.update(sorted(found.codes))
        tally["race"] += found.race
        tally["deadlock"] += found.dead
        tally["clean"] += not (found.codes or found.race or found.dead)
        wrong = differences(made, found, told)
        if wrong:
            different.append((made, wrong))
    return tally, different


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--engine", default="explicit")
    options = parser.parse_args()
    tally, different = compare(options.seed, options.count, options.engine)
    for made, wrong in different:
        print("\n".join(wrong))
        print(made.text())
    print(", ".join(f"{name} {n}" for name, n in tally.most_common()))
    print(f"{len(different)} differences")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
