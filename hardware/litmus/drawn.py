"""Random programs for the chip, those of the comparison of engines: of all kinds of operations, most with a mistake.

python -m hardware.litmus.drawn --programs 2000 --seed S --out BUNDLE [--families spinning,counted]

Left out are what has no defined behaviour or may wait forever, which would cost a context, and what the explicit
engine does not answer in time, since nobody could judge what was seen.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from hardware.litmus.observe import observed
from hardware.litmus.plan import bundle, tell
from mcheck.answers.verdict_rules import makes_undefined
from mcheck.base.budget import processor_time
from mcheck.base.errors import McheckError
from mcheck.checking.policy.engines import ask_engine
from mcheck.checking.policy.question import Question
from mcheck.frontend import litmus
from mcheck.ir.program import Program
from tests.fuzz.differential import DEFAULT_MODEL, model_of
from tests.fuzz.programs import FAMILIES, program

SECONDS = 1.5
"""For the answer about a program."""


def drawn(seed: str, count: int, first: int = 0, families: Sequence[str] = ()) -> Iterator[tuple[str, Program]]:
    """The programs by name, each text once; of all usual ``families`` or of these."""
    seen: set[str] = set()
    for number in range(first, first + count):
        text = program(Random(f"{seed}-{number}"), families)
        code = text.split("{", 1)[1]
        if code not in seen:
            seen.add(code)
            found = litmus.parse(text, f"{seed}-{number}.litmus")
            if not why_not(found):
                yield f"random/{seed}-{number}", observed(found)


def why_not(found: Program) -> str:
    """Why a program is not for the chip, if it is not."""
    try:
        with processor_time():
            told = ask_engine(
                "explicit", found, model_of(found.model or DEFAULT_MODEL), Question(findings=True), SECONDS
            )
    except McheckError as error:
        return error.message
    if not told.complete or told.verdict == "unknown":
        return "not answered in time"
    if any(map(makes_undefined, told.findings)):
        return "undefined"
    return "waits forever" if any(f.kind == "deadlock" for f in told.findings) else ""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=1000, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="K")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--ms", type=int, default=60, help="time of a test beyond one launch for each setting")
    parser.add_argument("--families", default="", help=f"some of {','.join(FAMILIES)}")
    given = parser.parse_args()
    families = tuple(name for name in given.families.split(",") if name)
    if unknown := sorted(set(families) - set(FAMILIES)):
        parser.error(f"no family {', '.join(unknown)}; there are {', '.join(FAMILIES)}")
    tell(bundle(drawn(given.seed, given.programs, given.first, families), given.out, milliseconds=given.ms))


if __name__ == "__main__":
    main()
