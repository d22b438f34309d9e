"""The kernels do what the tests do: both are executed here, the kernels by their transcriptions."""

from __future__ import annotations

from pathlib import Path

import pytest

from hardware.litmus.intended import intended
from hardware.litmus.kernel import Kernel
from hardware.litmus.observe import observed
from hardware.litmus.whole import whole
from mcheck.engines.concrete.machine import machine
from mcheck.engines.concrete.schedule import run
from mcheck.frontend.litmus import load as load_test
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program
from mcheck.semantics.chip_behaviour import SM_90
from tests.hardware.transcribed import transcribed

LITMUS = Path(__file__).parents[2] / "litmus"
SAMPLE = (
    "barriers/Bar+two-warps", "barriers/Bar+divergent+not-aligned", "barriers/Bar.red+popc", "barriers/Bar.red+or-and",
    "barriers/MP+bar.cta.sync", "barriers/MP+bar.cta.arrive", "barriers/MP+bar.sync+number-from-register",
    "barriers/Bar+exited+no-deadlock", "warps/warps-shfl-down-in-segments", "warps/warps-vote", "warps/warps-redux",
    "warps/warps-match-any", "warps/warps-elect-waits-for-the-mask", "atomics/Inc+cas-loops",
    "kernels/A04-epilogue-without-proxy-fence-fixed", "kernels/A07-bulk-copy-to-a-mapped-address-fixed",
    "kernels/A07-warp-remote-copy-without-proxy-fence-fixed", "kernels/B01-refill-overtakes-generic-reads-fixed",
    "kernels/G02-three-workers-release-by-one-lane-each-fixed", "kernels/H13-named-barrier-leaves-one-warp-out-fixed",
    "kernels/J01-three-stages-and-three-groups-pending-fixed", "kernels/P15-full-empty-ring",
    "kernels/P20-phases-as-bits-of-a-register", "kernels/P60-ping-pong-named-barriers",
    "kernels/A10-wgmma-operand-without-proxy-fence-fixed",
)  # fmt: skip


def left(made: Kernel, program: Program) -> dict[str, int]:
    """What the transcription of a kernel leaves where the terms of the program are looked for."""
    m = machine(parse(transcribed(made), "kernel.litmus"), how=SM_90)
    run(m)
    assert [f.code for f in m.findings] == []
    assert all(r.ended for r in m.runners)
    out = {}
    for w in made.watched:
        name, at, size = ("results", 8 * w.slot, 8) if w.slot is not None else (f"OBJ{w.object}", w.offset, w.size)
        place = m.program.memory.instance_of(name)
        assert place is not None
        data, _ = m.memory.read(place.base + at, size)
        out[w.label] = int.from_bytes(data, "little") % (1 << 8 * w.size)
    done = m.program.memory.instance_of("done")
    assert done is not None
    ctas = len({t.place.cta.number for t in program.threads})
    assert int.from_bytes(m.memory.read(done.base, 4)[0], "little") == ctas
    return out


@pytest.mark.daily
@pytest.mark.parametrize("name", SAMPLE)
def test_a_kernel_leaves_what_the_test_leaves(name: str) -> None:
    program = observed(load_test(str(LITMUS / f"{name}.litmus")))
    found = left(whole(program, "t0"), program)
    expected = intended(program)
    assert {label: found[label] for label in expected} == expected


def test_the_sample_has_something_to_say() -> None:
    """Most of it has terms whose values no schedule changes."""
    known = [intended(observed(load_test(str(LITMUS / f"{name}.litmus")))) for name in SAMPLE[:8]]
    assert sum(map(bool, known)) >= 7
