"""Compares what the chip answered with what the concrete engine says.

    python -m hardware.replay [FILE]

The file is what ``hardware.run`` wrote; the committed one is ``hardware/observed.jsonl.gz``.
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hardware import encodings
from hardware.cases import Case
from hardware.model import answer, inputs, program_of
from mcheck.base.errors import Unsupported
from mcheck.ir.memory import TensorMapSpec
from mcheck.semantics.tensor_map import violations

OBSERVED = Path(__file__).with_name("observed.jsonl.gz")

MEANT_STATUS = {
    ("undefined UB401", "trap 715"): "a start that is not a multiple of 16 bytes traps",
    ("undefined UB402", "trap 715"): "a store at a negative coordinate traps",
    ("undefined UB102", "trap 716"): "shared memory that is not aligned to 128 bytes traps",
    ("undefined UB217", "ok"): "the ISA leaves it open whether expect-tx completes a phase; on sm_90 it does",
}
"""What the concrete engine calls undefined, and what the chip does instead."""


def lines(path: Path = OBSERVED) -> list[dict[str, Any]]:
    """The records: first what ran where and when, then cases with answers, then encodings."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def difference(case: Case, seen: dict[str, Any]) -> str | None:
    """In what the concrete engine differs from the chip; ``None`` if they agree or differ as ``MEANT_STATUS`` says."""
    ours = answer(case)
    status = str(seen["status"])
    short = " ".join(status.split()[:2]) if status.startswith("trap") else status
    if status.startswith("refused") and ours["status"] == "undefined UB404":
        return None
    if ours["status"] != status:
        if (ours["status"], short) in MEANT_STATUS:
            return None
        return f"{ours['status']} here, {status} on the chip"
    if seen.get("stray") or seen.get("shared_base"):
        return "bytes outside every object changed, or shared memory lay elsewhere"
    given = inputs(case, program_of(case))
    for label, text in seen["memory"].items():
        mine, known = ours["memory"][label], ours["known"][label]
        theirs = given.get(label, bytes(len(mine))) if text == "same" else base64.b64decode(text)
        wrong = [k for k, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a != b and (not known or known[k])]
        if wrong:
            k = wrong[0]
            return f"{label}: {len(wrong)} bytes differ, the first at {k}: {mine[k]:#04x} here, {theirs[k]:#04x} there"
    for name, value in seen["registers"].items():
        if ours["registers"][name] != value:
            return f"{name} is {ours['registers'][name]} here, {value} on the chip"
    return None


def encoding_difference(spec: TensorMapSpec, refused: int | None) -> str | None:
    """In what our limits differ from the driver's; ``None`` if they agree or the difference is meant."""
    try:
        broken = violations(spec)
    except Unsupported:
        return None
    if bool(broken) == (refused is not None):
        return None
    if refused and spec.swizzle_atomicity != "16B":
        return None  # sm_90 has no other atoms; later chips do.
    if not refused and len(broken) == 1 and "interleave_layout 32B takes" in broken[0]:
        return None  # The documents ask for it, the driver does not look.
    return f"{spec}: {broken or 'legal'} here, {'refused' if refused else 'taken'} by the driver"


def differences(path: Path = OBSERVED) -> Iterator[tuple[str, str | None]]:
    """Every record by the name of its group, and in what it differs."""
    for line in lines(path)[1:]:
        if "case" in line:
            case = Case.from_json(line["case"])
            found = difference(case, line["answer"])
            yield case.group, f"{case.name}: {found}" if found else None
        else:
            yield "encode", encoding_difference(encodings.from_json(line["encode"]), line["refused"])


def main() -> int:
    """The command line."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else OBSERVED
    good: Counter[str] = Counter()
    bad = []
    for group, found in differences(path):
        good[group] += found is None
        if found:
            bad.append(found)
    about = lines(path)[0]
    print(f"{about['device']}, driver {about['driver']}, {about['date']}")
    for group, count in good.items():
        print(f"{count:4d} {group}")
    print("\n".join(bad))
    print(f"{sum(good.values())} agree, {len(bad)} differ")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
