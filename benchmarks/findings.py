#!/usr/bin/env python3
"""The three engines side by side: which kinds of findings, and which codes, each has for a program.

    python -m benchmarks.findings [--count 3000] [--seed 1] [--first 0] [--jobs 2] [--limit S]
                                  [--save FOLDER] [--without ENGINE]
    python -m benchmarks.findings PATH...      the same for litmus tests: files, folders (but kernels)

Races, undefined behaviour and deadlocks of severity error or review are compared, between the protocol engine, the
exhaustive engine and Z3: first the set of kinds, then the set of codes. An engine without an answer (time, bound,
unsupported) is left out and counted. Prints how many programs were compared, the mix of themes and codes, the
differences by class, and each differing program by its number. Exit status 1 if kinds differ, 2 if only codes do.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.agreement import DEFAULT_MODEL, model_of, random_programs, tests
from mcheck.check.agree import Said, said
from mcheck.findings import catalogue
from mcheck.syntax import load, parse

ENGINES = ("protocol", "explicit", "z3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What the engines say of one program, by their names; ``text`` is the program, ``crash`` an engine's failure."""

    name: str
    text: str
    said: dict[str, Said] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    crash: str = ""

    @property
    def answers(self) -> dict[str, Said]:
        """The engines that looked at every execution."""
        return {name: s for name, s in self.said.items() if s.complete}

    @property
    def kinds(self) -> dict[str, frozenset[str]]:
        """The kinds of findings, by engine."""
        return {name: s.kinds for name, s in self.answers.items()}

    @property
    def codes(self) -> dict[str, frozenset[str]]:
        """The codes of findings, by engine; that a scope is too narrow is a cause of RACE001."""
        return {name: s.causes for name, s in self.answers.items()}


def look(named: tuple[str, str], engines: tuple[str, ...], limit: float) -> Row:
    """The answers about one program; a text that is a path is read from there."""
    name, text = named
    p = parse(text, f"{name}.litmus") if text else load(name)
    model = model_of(p.model or DEFAULT_MODEL)
    answers, seconds = {}, {}
    for engine in engines:
        started = time.perf_counter()
        try:
            answers[engine] = said(engine, p, model, timeout=limit)
        except Exception as error:  # noqa: BLE001 - a crash of an engine is a difference too
            return Row(name=name, text=text, crash=f"{engine}: {type(error).__name__}: {error}")
        seconds[engine] = time.perf_counter() - started
    return Row(name=name, text=text, said=answers, seconds=seconds)


def classes(sets: dict[str, frozenset[str]]) -> list[str]:
    """The differences as ``engine alone: members``, one for each engine that stands apart."""
    if len(set(sets.values())) < 2:
        return []
    common = frozenset.intersection(*sets.values())
    return [f"{name} +{','.join(sorted(s - common))}" for name, s in sets.items() if s - common]


@dataclass(slots=True)
class Table:
    """All rows, counted."""

    rows: int = 0
    compared: int = 0
    themes: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    silent: Counter[str] = field(default_factory=Counter)
    kinds: dict[str, list[str]] = field(default_factory=dict)
    only_codes: dict[str, list[str]] = field(default_factory=dict)
    crashes: list[str] = field(default_factory=list)
    seconds: Counter[str] = field(default_factory=Counter)

    def add(self, row: Row) -> bool:
        """Counts a row; whether its engines differ."""
        self.rows += 1
        theme = re.search(r"PTX random-(\w+)", row.text)
        if theme:
            self.themes[theme[1]] += 1
        if row.crash:
            self.crashes.append(f"{row.name}: {row.crash}")
            return True
        self.seconds.update(row.seconds)
        self.silent.update(f"{n}: {s.reason}" for n, s in row.said.items() if not s.complete)
        self.compared += len(row.answers) > 1
        self.codes.update(c for c in frozenset().union(*row.codes.values()))
        for sets, into in ((row.kinds, self.kinds), (row.codes, self.only_codes)):
            found = classes(sets)
            if found:
                into.setdefault("; ".join(found), []).append(row.name)
                return True
        return False

    def show(self, head: str) -> None:
        """The summary."""
        print(f"{self.rows} programs{head}; {self.compared} with at least two answers")
        print(f"different kinds: {sum(map(len, self.kinds.values()))}; same kinds but different codes: "
              f"{sum(map(len, self.only_codes.values()))}; crashes: {len(self.crashes)}")  # fmt: skip
        print("seconds: " + ", ".join(f"{n} {s:.1f}" for n, s in self.seconds.items()))
        for title, counter in (("themes", self.themes), ("codes", self.codes), ("no answer", self.silent)):
            print(f"{title}: " + ", ".join(f"{name} {n}" for name, n in counter.most_common()))
        for title, groups in (("KINDS", self.kinds), ("CODES", self.only_codes)):
            for what, names in sorted(groups.items(), key=lambda kv: -len(kv[1])):
                print(f"{title} {len(names):4d}  {what}   e.g. {', '.join(names[:6])}")
        for crash in self.crashes:
            print(f"CRASH {crash}")


def programs(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """(name, text) of what is to be looked at; tests that have a file come without their text."""
    if options.paths:
        yield from ((str(file), "") for path in options.paths for file, _ in tests(path))
    else:
        yield from random_programs(options.seed, options.first, options.count)


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=5.0)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--without", action="append", default=[], choices=ENGINES)
    options = parser.parse_args()
    engines = tuple(e for e in ENGINES if e not in options.without)
    catalogue.all()
    table = Table()
    work = partial(look, engines=engines, limit=options.limit)
    with ProcessPoolExecutor(options.jobs) as pool:
        for row in pool.map(work, programs(options), chunksize=8):
            if table.add(row) and options.save is not None and row.text:
                options.save.mkdir(parents=True, exist_ok=True)
                (options.save / f"{row.name}.litmus").write_text(row.text, encoding="utf-8")
    table.show("" if options.paths else f", seed {options.seed}, numbers {options.first} and on")
    return 1 if table.kinds or table.crashes else 2 if table.only_codes else 0


if __name__ == "__main__":
    sys.exit(main())
