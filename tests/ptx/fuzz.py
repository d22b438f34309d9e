"""Mutates PTX modules and launches as people, tools and transport get them wrong, and checks them: nothing may crash.

    python -m tests.ptx.fuzz --count 20000 --seed 1 --state fuzz.json

A crash is an internal error, an error without a place, a report that cannot be written, an answer that takes far longer
than its limits of time and memory allow, which a process of its own keeps. The modules are those below ``tests/ptx``
with a launch beside them, and two that stand alone. With ``--state`` a run goes on where the last one ended.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcheck.check.case import Checked, Options, Settings
from mcheck.check.modules import check_text
from mcheck.check.single import failed, lost
from mcheck.errors import InputError
from mcheck.policy.engines import preload
from mcheck.ptx import launching
from mcheck.run.case import Case
from mcheck.run.pool import run_cases
from tests.check.fuzz import Found, complaint

HERE = Path(__file__).parent
LIMIT = 2.0
"""Seconds that a module is given, in a process that is stopped then."""
PATIENCE = 60.0
"""Seconds after which nothing was stopped: even where ten others want the processor."""
MEMORY = 1 << 30
"""Bytes that the process of a module may take."""
LARGEST = 12_000
"""Characters of a module: larger ones take long and show nothing else."""
ALONE: dict[str, dict[str, Any]] = {
    "hand_over": {"grid": 1, "params": {"out": {"buffer": 256}, "rows": 1}},
    "every_form": {"grid": 2, "shared": 64},
}

NUMBER = re.compile(r"(?<![\w.%$])\d+(?![\w.])")
WORD = re.compile(r"[%$A-Za-z_][\w$]*")
PART = re.compile(r"\.[A-Za-z][\w:]*")
NUMBERS = (
    "0", "1", "-1", "2", "7", "31", "32", "33", "64", "255", "1024", "65536", "100000000", "4294967295", "4294967296",
    "18446744073709551615", "18446744073709551616", "0x7fffffffffffffff", "0f7FC00000",
    "(1<<63)", "1/0", "%r1", "WARP_SZ",
)  # fmt: skip
INSERTED = (
    "bar.sync 0;", "bar.sync 1, 64;", "trap;", "exit;", "ret;", "brkpt;", "@%p1 exit;", "{", "}",
    "nonsense.u32 %r1, %r2;", "fence.proxy.async;", "mov.u32 %r1, %clock;", "mov.b32 %r2, -1;",
    "st.shared.u32 [%r1], %r2;", "ld.global.u32 %r1, [%rd1];", "bra $L__done;", "L: bra L;", "activemask.b32 %r1;",
    "elect.sync %r1|%p1, -1;", "vote.sync.any.pred %p1, %p1, -1;", "shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;",
    "atom.global.add.u32 %r1, [%rd1], 1;", "call other;", "@%p1 bar.warp.sync -1;",
    "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [picture, {%f1, %f2}];", "cp.async.bulk.wait_group 0;",
    "nanosleep.u32 20;", "barrier.cluster.arrive;", "barrier.cluster.wait;", "mbarrier.init.shared.b64 [%r1], 1;",
    "setmaxnreg.inc.sync.aligned.u32 64;", "mapa.u32 %r1, %r2, 1;", "mul.wide.u32 %rd1, %r1, %r2;",
    "div.u32 %r1, %r2, 0;", ".reg .b32 %r<4>;", ".loc 1 1 1", '"',
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, -1, 0, 1, 31, 1 << 20, 1 << 31, 1 << 63, 1 << 70, 0.5, 1e300, "any", "1", "a", [], [0], [1, 2, 3, 4], {},
    True, {"buffer": None}, {"buffer": 0}, {"buffer": 1 << 40}, {"buffer": -1}, {"hex": "00"}, {"hex": "xyz"},
    {"tensormap": {}}, {"tensormap": {"rank": 9}}, {"at": {"0": {"buffer": 4}}}, {"at": {"x": 1}}, [2048, 1, 1],
    [1 << 31, 1, 1],
)  # fmt: skip

Mutation = Callable[[random.Random, list[str]], None]


# --- mutations of the text ------------------------------------------------------------------------------------


def _at(rng: random.Random, lines: list[str]) -> int:
    """A line, mostly of a body."""
    good = [k for k, line in enumerate(lines) if line.rstrip().endswith(";")]
    return rng.choice(good) if good and rng.random() < 0.9 else rng.randrange(len(lines))


def _drop(rng: random.Random, lines: list[str]) -> None:
    del lines[_at(rng, lines)]


def _repeat(rng: random.Random, lines: list[str]) -> None:
    at = _at(rng, lines)
    lines.insert(at, lines[at])


def _exchange(rng: random.Random, lines: list[str]) -> None:
    a, b = _at(rng, lines), _at(rng, lines)
    lines[a], lines[b] = lines[b], lines[a]


def _insert(rng: random.Random, lines: list[str]) -> None:
    lines.insert(_at(rng, lines), rng.choice(INSERTED))


def _truncate(rng: random.Random, lines: list[str]) -> None:
    del lines[rng.randrange(len(lines)) :]
    if lines:
        lines[-1] = lines[-1][: rng.randrange(len(lines[-1]) + 1)]


def _replaced(rng: random.Random, lines: list[str], what: re.Pattern[str], choose: Callable[[str], str]) -> None:
    at = _at(rng, lines)
    places = list(what.finditer(lines[at]))
    if places:
        place = rng.choice(places)
        lines[at] = lines[at][: place.start()] + choose(place[0]) + lines[at][place.end() :]


def _number(rng: random.Random, lines: list[str]) -> None:
    _replaced(rng, lines, NUMBER, lambda _: rng.choice(NUMBERS))


def _word(rng: random.Random, lines: list[str]) -> None:
    words = WORD.findall(lines[_at(rng, lines)]) or ["_"]
    _replaced(rng, lines, WORD, lambda _: rng.choice(words))


def _register(rng: random.Random, lines: list[str]) -> None:
    _replaced(rng, lines, re.compile(r"%[a-z]+\d+"), lambda name: re.sub(r"\d+", str(rng.randrange(12)), name))


def _part(rng: random.Random, lines: list[str]) -> None:
    parts = PART.findall(lines[_at(rng, lines)]) or [""]
    _replaced(rng, lines, PART, lambda _: rng.choice([*parts, "", ".nonsense"]))


def _characters(rng: random.Random, lines: list[str]) -> None:
    at = rng.randrange(len(lines))
    cut = rng.randrange(len(lines[at]) + 1)
    lines[at] = (
        lines[at][:cut] + rng.choice(list('{}()[];,.%@!|"\\/*+-=<>\0é\t$_0a')) + lines[at][cut + rng.randrange(2) :]
    )


def _negate(rng: random.Random, lines: list[str]) -> None:
    at = _at(rng, lines)
    line = lines[at].strip()
    lines[at] = line.replace("@!", "@", 1) if line.startswith("@!") else line.replace("@", "@!", 1)


MUTATIONS: tuple[Mutation, ...] = (
    _drop, _drop, _repeat, _exchange, _exchange, _insert, _insert, _insert, _truncate, _number, _number, _number, _word,
    _register, _register, _register, _part, _part, _characters, _negate,
)  # fmt: skip


def mutate(rng: random.Random, text: str) -> str:
    """``text`` with up to three mistakes."""
    lines = text.split("\n")
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        rng.choice(MUTATIONS)(rng, lines)
        lines = lines or [""]
    return "\n".join(lines)


# --- mutations of the launch ----------------------------------------------------------------------------------


def damaged(rng: random.Random, launch: dict[str, Any]) -> str:
    """The launch as JSON, often with a mistake."""
    made = json.loads(json.dumps(launch))
    if rng.random() < 0.4:
        where: Any = made
        while True:
            key = rng.choice([*where, "grid", "0"])
            inner = where.get(key)
            if isinstance(inner, dict) and inner and rng.random() < 0.7:
                where = inner
                continue
            break
        if rng.random() < 0.3:
            where.pop(key, None)
        else:
            where[key] = rng.choice(VALUES)
    text = json.dumps(made, indent=1)
    if rng.random() < 0.03:
        cut = rng.randrange(len(text))
        text = text[:cut] + rng.choice(("", "}", "{", ",", '"', "NaN")) + text[cut + 1 :]
    return text


# --- runs -----------------------------------------------------------------------------------------------------


def modules(largest: int = LARGEST) -> list[tuple[str, dict[str, Any]]]:
    """Modules and their launches."""
    found = [((HERE / f"{name}.ptx").read_text(encoding="utf-8"), launch) for name, launch in ALONE.items()]
    for path in sorted(HERE.rglob("*.json")):
        text = path.with_suffix(".ptx")
        if text.exists() and text.stat().st_size < largest:
            found.append((text.read_text(encoding="utf-8"), json.loads(path.read_text(encoding="utf-8"))))
    return found


def check(text: str, launch: str, settings: Settings, *, apart: bool) -> Checked:
    """The answer about a mutant; ``apart``: of a process of its own, which is stopped at its limits."""
    try:
        given = launching.from_json(launch, "mutated.json")
    except InputError as error:
        return failed("mutated.ptx", None, error, settings, 0.0)

    def task(case: Case, settings: Settings) -> Checked:
        return check_text(text, case.path, given, settings, Options())

    case = Case("mutated.ptx", text=text)
    return next(iter(run_cases([case], settings, 1, task, lost))) if apart else task(case, settings)


def run(
    count: int,
    seed: int,
    first: int = 0,
    *,
    largest: int = LARGEST,
    apart: bool = False,
    found: Found | None = None,
    each: Callable[[int, Found], None] = lambda _, __: None,
) -> Found:
    """``count`` mutants from the ``first`` on; each has a generator of its own, so that it can be had alone.

    What comes of them is added to ``found``, and ``each`` hears of every one.
    """
    known = modules(largest)
    preload("protocol")
    found = found or Found()
    for number in range(first, first + count):
        rng = random.Random(f"{seed}:{number}")
        text, launch = rng.choice(known)
        mutant, shape = mutate(rng, text), damaged(rng, launch)
        settings = Settings(profile=rng.choice(("ptx", "strict", "permissive")), timeout=LIMIT, memory=MEMORY)
        start = time.monotonic()
        result = check(mutant, shape, settings, apart=apart)
        seconds = time.monotonic() - start
        said = complaint(result, 0.0 if seconds < PATIENCE else seconds)
        found.see(number, f"{seed}:{number}", result, said, seconds, f"{shape}\n{mutant}")
        each(number, found)
    return found


# --- the state ------------------------------------------------------------------------------------------------

FIELDS = ("verdicts", "errors", "crashes", "slowest", "slowest_text")


def load(path: Path, seed: int) -> tuple[int, Found]:
    """The number of the next mutant, and what came of those before it."""
    if not path.exists():
        return 0, Found(log=True)
    kept = json.loads(path.read_text(encoding="utf-8"))
    if kept["seed"] != seed:
        raise SystemExit(f"{path} is of seed {kept['seed']}")
    crashes = [(name, text) for name, text in kept["crashes"]]
    found = Found(True, Counter(kept["verdicts"]), Counter(kept["errors"]), crashes)
    found.slowest, found.slowest_text = kept["slowest"], kept["slowest_text"]
    return kept["next"], found


def store(path: Path, seed: int, following: int, found: Found) -> None:
    """Writes the state in one step."""
    draft = path.with_name(f".{path.name}")
    kept = {name: getattr(found, name) for name in FIELDS}
    draft.write_text(json.dumps({"seed": seed, "next": following, **kept}), encoding="utf-8")
    draft.replace(path)


def main() -> int:
    """Prints the verdicts and the first crashes; exit status 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant, where there is no state")
    parser.add_argument("--state", type=Path, help="the file with what came of them, which a later run goes on from")
    options = parser.parse_args()
    kept: Path | None = options.state
    first, found = load(kept, options.seed) if kept else (options.first, Found(log=True))

    def each(number: int, found: Found) -> None:
        if kept and number % 20 == 19:
            store(kept, options.seed, number + 1, found)

    run(options.count - first if kept else options.count, options.seed, first, apart=True, found=found, each=each)
    if kept:
        store(kept, options.seed, max(first, options.count), found)
    return found.report(options.count, resource.RUSAGE_CHILDREN, shown=4000)


if __name__ == "__main__":
    sys.exit(main())
