"""Bundles of tests for the runner: modules of PTX, and ``plan.json`` with what the runner has to know.

python -m hardware.litmus.plan FOLDER --out BUNDLE             # every *.litmus file below FOLDER that the chip can run
python -m hardware.litmus.plan FOLDER --unseen --out BUNDLE    # of these, what the committed results lack
python -m hardware.litmus.plan FOLDER --alone --out BUNDLE     # each instance with CTAs of its own

What one GPU cannot run is counted, reason by reason.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hardware.emit import CannotEmit
from hardware.litmus import formula
from hardware.litmus.intended import intended
from hardware.litmus.kernel import Kernel, kernel, module
from hardware.litmus.observe import observed
from hardware.litmus.whole import whole
from mcheck.answers.final_states import terms_of
from mcheck.frontend import litmus
from mcheck.ir.condition import ConstTerm
from mcheck.ir.memory import GLOBAL_BASE
from mcheck.ir.program import Program
from mcheck.report.hardware_results import hash_text, load, observation_file

PER_MODULE = 24


def entry(program: Program, number: int, *, alone: bool = False) -> tuple[Kernel, dict[str, Any]]:
    """The kernel of a program, and its row of the plan; raises ``CannotEmit``.

    Lanes that are instances of their own make more of them, so a test that can lie so does, unless it shall be
    ``alone``: where the lanes of a warp wait for different mbarriers no ``try_wait`` suspends for long.
    """
    try:
        made = whole(program, f"t{number}") if alone else kernel(program, f"t{number}")
    except CannotEmit:
        if alone:
            raise
        made = whole(program, f"t{number}")
    return made, describe(program, made)


def describe(program: Program, made: Kernel) -> dict[str, Any]:
    """The row of the plan of a program's kernel."""
    names = {o.item.name: k for k, o in enumerate(made.objects) if not o.proxy}
    objects = []
    for item, stride, proxy in ((o.item, o.stride, o.proxy) for o in made.objects):
        if proxy:
            objects.append({"stride": stride, "proxy": proxy, "of": names[item.name]})
            continue
        row: dict[str, Any] = {"stride": stride, "init": (item.init or b"").hex()}
        if item.alias_of is not None:
            row["alias"] = names[item.alias_of]
        if item.tensor_map:
            row["maps"] = [
                {"spec": dataclasses.asdict(spec), **_target(program, made, names, spec.global_address)}
                for spec in item.tensor_map
            ]
        objects.append(row)
    watched = []
    for w in made.watched:
        where = {"slot": w.slot} if w.slot is not None else {"object": w.object, "offset": w.offset}
        watched.append({"label": w.label, "size": w.size, **where})
    return {
        "entry": made.name,
        **made.layout,
        "slots": made.slots,
        "warm": made.warm,
        "pause": made.pause,
        "objects": objects,
        "watched": watched,
        "aim": _aim(program),
        "contents": program.condition.kind == "none",
    }


def _aim(program: Program) -> Any:
    """What is looked for: the states of an exists, the violations of a forall, what a sketch is not written to do."""
    condition = program.condition
    if condition.kind != "none":
        aim = formula.encode(condition.formula)
        return ["not", aim] if condition.kind == "forall" else aim
    values = intended(program)
    return ["not", ["and", *(["==", label, value] for label, value in values.items())]] if values else True


def _target(program: Program, made: Kernel, names: dict[str, int], address: int) -> dict[str, int]:
    """The object that a tensor map describes, the offset in it, and the bytes from instance to instance."""
    for instance in program.memory.instances:
        if instance.cta is None and instance.base <= address < instance.base + instance.object.size:
            number = names[instance.object.name]
            return {"object": number, "offset": address - instance.base, "stride": made.objects[number].stride}
    if address < GLOBAL_BASE:
        raise CannotEmit("a tensor map of a fixed address")
    raise CannotEmit("a tensor map of no object")


def programs(paths: Iterable[Path]) -> Iterator[tuple[str, Program]]:
    """The tests below the paths, by path relative to the folder that was given."""
    for path in paths:
        files = sorted(path.rglob("*.litmus")) if path.is_dir() else [path]
        for file in files:
            yield str(file), observed(litmus.load(str(file)))


def unseen(tests: Iterable[tuple[str, Program]]) -> Iterator[tuple[str, Program]]:
    """The tests of which the committed results have no final states, or not those of what is watched now."""
    _, found = load(observation_file())
    for name, program in tests:
        seen = found.get(hash_text(program.source))
        labels = tuple(term.label for term in terms_of(program.condition) if not isinstance(term, ConstTerm))
        contents = program.condition.kind == "none"
        if seen is None or not seen.states or (seen.terms, seen.contents) != (labels, contents):
            yield name, program


def bundle(
    tests: Iterable[tuple[str, Program]], out: Path, *, milliseconds: int = 60, alone: bool = False
) -> tuple[int, Counter[str]]:
    """Writes the bundle; the number of tests in it, and the reasons why others are not."""
    out.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    texts: list[str] = []
    skipped: Counter[str] = Counter()
    for name, program in tests:
        number = len(rows)
        try:
            made, row = entry(program, number, alone=alone)
        except CannotEmit as reason:
            skipped[str(reason)] += 1
            continue
        about = {"name": name, "hash": hash_text(program.source), "text": program.source, "ms": milliseconds}
        rows.append({**about, "module": number // PER_MODULE, **row})
        texts.append(made.text)
        if len(texts) == PER_MODULE:
            (out / f"m{number // PER_MODULE}.ptx").write_text(module(texts))
            texts = []
    if texts:
        (out / f"m{(len(rows) - 1) // PER_MODULE}.ptx").write_text(module(texts))
    (out / "plan.json").write_text("[\n" + ",\n".join(json.dumps(r, separators=(",", ":")) for r in rows) + "\n]\n")
    return len(rows), skipped


def tell(planned: tuple[int, Counter[str]]) -> None:
    """Prints how many tests are in a bundle, and how many are not, by reason."""
    inside, skipped = planned
    print(f"{inside} of {inside + skipped.total()} tests")
    for reason, count in skipped.most_common():
        print(f"{count:5} {reason}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--ms", type=int, default=60, help="time of a test")
    parser.add_argument("--unseen", action="store_true", help="leave out what the committed results have")
    parser.add_argument("--alone", action="store_true", help="give each instance CTAs of its own")
    given = parser.parse_args()
    tests = programs(given.paths)
    tell(bundle(unseen(tests) if given.unseen else tests, given.out, milliseconds=given.ms, alone=given.alone))


if __name__ == "__main__":
    main()
