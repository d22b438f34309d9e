"""herd7 on the families of tests: the tests in its LISA, its states and its verdict.

herd7 has no PTX. ``herd/ptx.bell`` declares loads, stores and fences with orders and scopes, and ``herd/ptx.cat`` is
the model; the table form of PTX is rewritten line by line. What the families do not have (atomics, barriers, proxies)
is refused.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from benchmarks.families import State
from benchmarks.processes import Finished, run_process

FOLDER = Path(__file__).resolve().parent / "herd"
THREAD = re.compile(r"P\d+@cta (\d+),gpu (\d+)")
ACCESS = re.compile(r"(ld|st)\.(\w+)(?:\.(\w+))? (\w+), (\w+)")
FENCE = re.compile(r"fence\.(\w+)\.(\w+)")
BRANCH = re.compile(r"b(eq|ne) (\w+), (\w+), (\w+)")
LABEL = re.compile(r"\w+:")
STATES = re.compile(r"^States (\d+)\n((?:.*\n)*?)(?:Ok|No|Loop)", re.MULTILINE)
OBSERVED = re.compile(r"^Observation \S+ (\w+)", re.MULTILINE)
VALUE = re.compile(r"\[?([\w:]+)\]?=(-?\d+);")
UNROLL = 3
"""How often herd7 follows a loop; more than that it does not finish for the family with loops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What herd7 says of a test: ``verdict`` is mcheck's word for it, empty where there is none."""

    verdict: str
    states: frozenset[State]
    done: Finished


def missing(herd7: str) -> str | None:
    """Why there is nothing to run, with what to do about it."""
    if shutil.which(herd7) is not None:
        return None
    return f"no {herd7}: opam install herdtools7 (--herd7 PATH names another)"


def command(herd7: str, *, verdict_only: bool) -> list[str]:
    """The command, but for the test."""
    fixed = [herd7, "-bell", str(FOLDER / "ptx.bell"), "-model", str(FOLDER / "ptx.cat"), "-unroll", str(UNROLL)]
    return [*fixed, "-speedcheck", "fast"] if verdict_only else fixed


def ask_herd7(herd7: str, text: str, limit: float, *, verdict_only: bool) -> Said:
    """What herd7 says of a test in the table form of PTX."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "test.litmus")
        path.write_text(to_lisa(text), encoding="utf-8")
        done = run_process([*command(herd7, verdict_only=verdict_only), path], limit)
    verdict, states = ("", frozenset[State]()) if done.stopped else read_answer(done.output)
    return Said(verdict=verdict, states=states, done=done)


def read_answer(output: str) -> tuple[str, frozenset[State]]:
    """The verdict on an ``exists`` and the states, with the names that mcheck has for registers."""
    observed, states = OBSERVED.search(output), STATES.search(output)
    if observed is None or states is None:
        return "", frozenset()
    found = (VALUE.findall(line) for line in states[2].splitlines())
    named = frozenset(frozenset((_named(name), int(value)) for name, value in line) for line in found)
    return "fail" if observed[1] == "Never" else "pass", named


def _named(name: str) -> str:
    return f"P{name}" if ":" in name else name


def to_lisa(text: str) -> str:
    """A test in the table form of PTX as one of herd's LISA.

    Raises:
        ValueError: the test has something that is not rewritten.
    """
    name = text.partition("\n")[0].removeprefix("PTX ")
    body, condition = re.split(r"\n(?=exists)", text, maxsplit=1)
    table = [[cell.strip() for cell in line.rstrip(" ;").split("|")] for line in body.splitlines()[2:]]
    heads, *lines = table
    places = [THREAD.fullmatch(head) for head in heads]
    columns = [_rewrite([line[k] for line in lines]) for k in range(len(heads))]
    rows = [[f"P{k}" for k in range(len(heads))], *zip_longest(*columns, fillvalue="")]
    tree: dict[str, dict[str, list[int]]] = {}
    for k, place in enumerate(places):
        if place is None:
            raise ValueError(heads[k])
        tree.setdefault(place[2], {}).setdefault(place[1], []).append(k)
    gpus = (
        "(gpu " + " ".join(f"(cta {' '.join(f'P{k}' for k in threads)})" for threads in ctas.values()) + ")"
        for ctas in tree.values()
    )
    asked = re.sub(r"(P\d+:\w+|\w+) != (\w+)", r"~(\1 == \2)", condition)
    asked = re.sub(r"\bP(\d+:)", r"\1", asked).replace("==", "=")
    listed = "\n".join(" | ".join(row) + " ;" for row in rows)
    return f"LISA {name}\n{{ }}\n{listed}\nscopes: (sys {' '.join(gpus)})\n{asked}"


def _rewrite(cells: list[str]) -> list[str]:
    """The instructions of a thread; a label stands before the next one."""
    written, label = [], ""
    for cell in filter(None, cells):
        if LABEL.fullmatch(cell):
            label = f"{cell} "
            continue
        written += [label + each if k == 0 else each for k, each in enumerate(_instructions(cell))]
        label = ""
    return written


def _instructions(cell: str) -> list[str]:
    if (access := ACCESS.fullmatch(cell)) is not None:
        kind, order, scope, *operands = access.groups()
        tags = f"[{order},{scope or 'cta'}]"
        return [f"{'r' if kind == 'ld' else 'w'}{tags} {operands[0]} {operands[1]}"]
    if (fence := FENCE.fullmatch(cell)) is not None:
        return [f"f[{fence[1]},{fence[2]}]"]
    if (branch := BRANCH.fullmatch(cell)) is not None:
        compared = "neq" if branch[1] == "ne" else "eq"
        return [f"mov r99 ({compared} {branch[2]} {branch[3]})", f"b[] r99 {branch[4]}"]
    raise ValueError(cell)
