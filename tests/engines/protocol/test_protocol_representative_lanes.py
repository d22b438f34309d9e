"""Agents of which one thread stands for all lanes: which they are, what a model has to allow, that nothing is lost."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from mcheck.base.errors import InputError
from mcheck.cat import load_model, parse_model
from mcheck.cat.algebra.compiled_models import tape_of
from mcheck.engines.protocol.analysis.lane_groups import partition_lanes
from mcheck.engines.protocol.execution.setup import Setup, prepare
from mcheck.engines.protocol.findings_answer import answer
from mcheck.engines.protocol.incremental.lane_representatives import lanes_are_representable
from mcheck.engines.protocol.passes import passes_without
from mcheck.frontend.litmus import parse
from tests.cat.pretty import show_model
from tests.engines.protocol.sketches import ARRIVE, FENCE, ring

KERNELS = Path(__file__).parents[3] / "litmus" / "kernels"
READ = "    ld.shared.u32 r0, [buf[k%S] + 4*%laneid];\n"


def prepared(text: str, model: str = "ptx-9.0") -> Setup:
    program = parse(text, "ring.litmus")
    return prepare(program, partition_lanes(program), load_model(model), "ptx", 2, lambda: None)


def test_consumers_that_wait_read_and_arrive_are_lean() -> None:
    assert prepared(ring()).single_representative == (False, True, True)


@pytest.mark.parametrize(
    "more",
    [
        "    st.shared.u32 [buf[k%S] + 4*%laneid], 1;\n",
        "    ld.shared.u32 r1, [full[k%S]];\n",
        "    fence.sc.cta;\n",
        "    cp.async.ca.shared.global [buf[k%S] + 4*%laneid], [src + 4*%laneid], 4;\n",
    ],
)
def test_who_does_more_is_not(more: str) -> None:
    assert not any(prepared(ring().replace(READ, READ + more)).single_representative)


@pytest.mark.parametrize("model", ["ptx-9.0", "ptx-9.3"])
def test_the_models_allow_it(model: str) -> None:
    assert lanes_are_representable(tape_of(load_model(model)))


@pytest.mark.parametrize(
    "more",
    [
        "flag ~empty ((R * R) & ext) as RACE001",  # of two lanes
        "flag ~empty ((WAIT * ARRIVE) & sr) as RACE001",
        "flag ~empty ([R]; (barrier & ext); [F]) as RACE001",  # a way through a lane that is not shown
        "acyclic ((phase & ext) | po) as Told",
    ],
)
def test_a_model_that_speaks_of_two_lanes_does_not(more: str) -> None:
    text = f"{show_model(load_model('ptx-9.0'))}\n{more}\n"
    assert not lanes_are_representable(tape_of(parse_model(text, "edited.cat")))


def both(text: str) -> list[object]:
    """What is found with one thread and with two that stand for all."""
    out: list[object] = []
    for without in ((), ("representative-lanes",)):
        passes = passes_without(without)
        found = answer(parse(text, "lanes.litmus"), load_model("ptx-9.0"), timeout=20, passes=passes)
        out.append((found.verdict, found.reasons, found.findings))
    return out


@pytest.mark.daily
@pytest.mark.parametrize("fault", [(), (FENCE,), (ARRIVE,), (READ,), ("((k/S)%2)^1",), (FENCE, ARRIVE)])
def test_faults_of_rings_are_found_alike(fault: tuple[str, ...]) -> None:
    text = ring(rounds=5)
    for part in fault:
        text = text.replace(part, "0" if part.startswith("(") else "")
    one, two = both(text)
    assert one == two


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("seed", range(24))
def test_what_is_wrong_with_kernels_is_found_alike(seed: int) -> None:
    """A kernel of the index with a statement taken out, or two that have changed places."""
    random = Random(seed)
    files = sorted(p for p in KERNELS.rglob("*.litmus") if p.stat().st_size < 3_000)
    while True:
        lines = random.choice(files).read_text().split("\n")
        places = [k for k, line in enumerate(lines) if line.endswith(";") and line.startswith("    ")]
        first, then = random.choice(places or [0]), random.choice(places or [0])
        lines[first], lines[then] = lines[then], lines[first] if random.random() < 0.5 else ""
        text = "\n".join(lines)
        try:
            if any(prepared(text).single_representative):
                break
        except InputError:
            continue
    one, two = both(text)
    assert one == two
