"""Is docs/coverage.md true: does it have every part of the models once, and does the test of each row notice?

    python -m benchmarks.coverage_page [--jobs N]

``benchmarks.coverage`` looks for tests, which takes hours; this asks the one test of a row, which takes minutes.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

from benchmarks.coverage import SAMPLES, SECONDS, Edit, edits, test
from mcheck.cat import load_model
from mcheck.cat.ast import Model
from mcheck.tools.generate.alphabet import load
from mcheck.tools.generate.judge import generate
from tests.cat.pretty import show_statement

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "coverage.md"
ROW = re.compile(r"^\| `(?P<where>[^`]+)` \| `(?P<part>[^`]+)` \| (?P<rest>.*) \|$", re.MULTILINE)
TEST = re.compile(r"`(?P<test>[^`]+)`(?: \(under `(?P<under>ptx-9\.[35])`\))?")
NEEDED = "## Parts and the tests that need them"


class Row(NamedTuple):
    """A part, the test that needs it (empty: none can), and the later model under which alone it does so."""

    where: str
    part: str
    test: str
    under: str


def rows(text: str) -> list[Row]:
    """The rows of the page."""
    argued, needed = text.split(NEEDED)
    found = [Row(m["where"], m["part"], "", "") for m in ROW.finditer(argued)]
    for m in ROW.finditer(needed):
        by = TEST.fullmatch(m["rest"])
        if by is None:
            raise ValueError(f"no test: {m[0]}")
        found.append(Row(m["where"], m["part"], by["test"], by["under"] or ""))
    return found


MODELS = {"": "ptx-9.0", "9.3 ": "ptx-9.3", "9.5 ": "ptx-9.5"}
"""The models of the page, the first one first, by how its rows begin."""


@cache
def model_of(name: str) -> Model:
    """A model of the page."""
    return load_model(name)


def spelled(edit: Edit) -> tuple[str, str]:
    """Definition and part as the page spells them."""
    return edit.where, edit.part.replace("|", "∪").replace("&", "∩").replace("\\", "∖")


@cache
def parts() -> dict[tuple[str, str], list[Edit]]:
    """The edits of the first model, and of each other one what those before it do not have, by their rows.

    A part that stands in a definition twice has two edits and two rows.
    """
    known: frozenset[str] = frozenset()
    found: dict[tuple[str, str], list[Edit]] = {}
    for begin, name in MODELS.items():
        for edit in edits(model_of(name), known):
            where, part = spelled(edit)
            found.setdefault((f"{begin}{where}", part), []).append(edit)
        known |= {show_statement(statement) for statement in model_of(name).statements}
    return found


def misplaced(given: Iterable[Row]) -> list[str]:
    """Parts without a row, and rows without a part."""
    have = Counter((r.where, r.part) for r in given)
    want = Counter({key: len(found) for key, found in parts().items()})
    return [f"no row: {w}: {p}" for w, p in want - have] + [f"no part: {w}: {p}" for w, p in have - want]


def text_of(name: str, generated: dict[str, str]) -> str:
    """The text of the test that a row names."""
    return generated[name] if name in generated else (ROOT / name).read_text()


def generated_tests(names: set[str]) -> dict[str, str]:
    """The texts of the generated ones among these tests."""
    alphabets = {n.split("/")[0] for n in names}
    found = {}
    for alphabet, size in sorted({(a, s) for a, s, _ in SAMPLES if a in alphabets}):
        for one in generate(load(alphabet), size):
            if (name := f"{alphabet}/{one.name}") in names:
                found.setdefault(name, one.text)
    return found


def notices(row: Row, text: str) -> bool:
    """Whether the test answers otherwise without the part: without each of the parts that read so, one at a time."""
    found = parts()[row.where, row.part]
    base = model_of(next(name for begin, name in reversed(MODELS.items()) if row.where.startswith(begin)))
    if row.under:
        base = model_of(row.under)
        found = [e for e in edits(base) if spelled(e) == (row.where, row.part)]
    asked = test(row.test if row.test.endswith(".litmus") else str(ROOT / row.test), text)
    before = asked(base, 5 * SECONDS)
    return before is not None and any(asked(e.model, 5 * SECONDS) not in (None, before) for e in found)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    page = rows(PAGE.read_text())
    wrong = misplaced(page)
    there = {key for key, _ in parts().items()}
    named = [row for row in page if row.test and (row.where, row.part) in there]
    generated = generated_tests({row.test for row in named if not row.test.startswith(("litmus/", "benchmarks/"))})
    texts = [text_of(row.test, generated) for row in named]
    with ProcessPoolExecutor(given.jobs) as processes:
        for row, good in zip(named, processes.map(notices, named, texts, chunksize=4), strict=True):
            if not good:
                wrong.append(f"{row.test} does not notice: {row.where}: {row.part}")
    for line in wrong:
        print(line)
    print(f"{len(page)} parts, {len(named)} with a test, {len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
