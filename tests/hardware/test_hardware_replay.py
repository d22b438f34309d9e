"""What a real chip answered, replayed on any processor (see docs/hardware.md)."""

from __future__ import annotations

import json
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from hardware import emit, encodings, replay  # noqa: E402 - the folder is no package of the distribution
from hardware.cases import Case, cases, groups  # noqa: E402
from hardware.model import program_of  # noqa: E402
from tests.assembler import Assembler  # noqa: E402

GROUPS = [name for name, _ in groups()]


@cache
def observed() -> list[dict[str, Any]]:
    return replay.lines()


def of_group(group: str) -> list[dict[str, Any]]:
    return [line for line in observed()[1:] if line.get("case", {}).get("group") == group]


@pytest.mark.daily
@pytest.mark.parametrize("group", GROUPS)
def test_the_chip_and_the_executor_agree(group: str) -> None:
    found = of_group(group)
    assert len(found) == dict(groups())[group]
    differing = [replay.difference(Case.from_json(line["case"]), line["answer"]) for line in found]
    assert [d for d in differing if d] == []


def test_the_driver_and_the_limits_agree() -> None:
    found = [line for line in observed()[1:] if "encode" in line]
    assert len(found) >= 400
    assert sum(line["refused"] is not None for line in found) > 100
    specs = [(encodings.from_json(line["encode"]), line["refused"]) for line in found]
    assert [d for spec, refused in specs if (d := replay.encoding_difference(spec, refused))] == []


def test_where_and_when_it_ran() -> None:
    about = observed()[0]
    assert "H200" in about["device"]
    assert about["driver"]
    assert about["date"]
    counts = Counter(line["case"]["group"] for line in observed()[1:] if "case" in line)
    assert sum(counts.values()) >= 500
    assert replay.OBSERVED.stat().st_size < 3 << 20


def test_the_committed_cases_are_the_generated_ones() -> None:
    made = [json.loads(json.dumps(case.to_json())) for case in cases(observed()[0]["seed"])]
    assert made == [line["case"] for line in observed()[1:] if "case" in line]


def test_a_changed_byte_is_noticed() -> None:
    """The comparison compares: one wrong bit in an answer, one wrong predicate."""
    line = next(x for x in of_group("tile-load") if x["answer"]["memory"]["buf@0"] != "same")
    case, answer = Case.from_json(line["case"]), dict(line["answer"])
    assert replay.difference(case, answer) is None
    text = answer["memory"]["buf@0"]
    wrong = ("B" if text[0] != "B" else "C") + text[1:]
    assert "differ" in str(replay.difference(case, answer | {"memory": answer["memory"] | {"buf@0": wrong}}))
    assert "p1" in str(replay.difference(case, answer | {"registers": {"p:p1": 0}}))
    assert "trap" in str(replay.difference(case, answer | {"status": "trap 715 CUDA_ERROR_ILLEGAL_INSTRUCTION"}))


@pytest.mark.parametrize(
    ("group", "predicates"),
    [
        # H7: on a fresh object parity 0 is not complete, parity 1 is.
        ("mbarrier-fresh", {"p:p0": 0, "p:p1": 1}),
    ],
)
def test_answers_to_open_questions(group: str, predicates: dict[str, int]) -> None:
    """H6: after the last arrival, expect-tx that lifts the tx-count to zero completes the phase on this chip."""
    found = of_group(group)
    assert all(line["answer"]["registers"] == predicates for line in found[::2])
    assert all(line["answer"]["registers"] == {"p:p0": 0, "p:p1": 1, "p:p2": 0} for line in found[1::2])


@pytest.mark.daily(days=3, least=0)
def test_every_group_assembles(assembler: Assembler) -> None:
    """The modules that the runner makes are PTX, by NVIDIA's assembler."""
    firsts = {case.group: case for case in reversed(cases())}
    for group in ("tile-load", "im2col-store", "cluster-reduce", "multicast", "ring", "cp-async", "mbarrier"):
        status, said = assembler.assemble(emit.module(program_of(firsts[group])).text, f"-arch={emit.TARGET}")
        assert status == 0, f"{group}: {said}"
