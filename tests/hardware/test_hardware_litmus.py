"""The runner's host side, and the committed results beside the model: no GPU is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hardware.emit import CannotEmit
from hardware.litmus import formula, settings, tally
from hardware.litmus.compare import EXPLAINED, REREAD, as_seen, compare
from hardware.litmus.kernel import kernel, module
from hardware.litmus.observe import observed
from hardware.litmus.plan import entry
from hardware.litmus.run import assemble
from hardware.litmus.stress import BOUND, FREE, geometry
from mcheck.cat import load_model
from mcheck.frontend.litmus import load as load_test
from tests.assembler import Assembler
from tests.hardware.observations import observations

LITMUS = Path(__file__).parents[2] / "litmus"
SAMPLE = (
    "classic/IRIW+rlx", "classic/LB+ctrls", "fences/MP+membar.ctas+other-cta", "atomics/Cas+one-winner",
    "bulk/bulk-ring-one-slot-no-fence", "bulk/bulk-dsm-copy", "bulk/bulk-st-async", "bulk/bulk-multicast-to-two",
    "cp-async/cp-async-mbarrier-arrive-noinc", "reduce/reduce-add-then-wait", "tensor/tensor-load-1d",
    "barriers/MP+bar.arrive+bar.sync", "mbarrier/mbarrier-try-wait-may-give-up",
)  # fmt: skip


@pytest.mark.daily
@pytest.mark.parametrize("name", SAMPLE)
def test_tests_become_kernels_that_assemble(name: str, assembler: Assembler) -> None:
    made = kernel(observed(load_test(str(LITMUS / f"{name}.litmus"))), "t0")
    status, said = assembler.assemble(module([made.text]), "-arch", "sm_90a")
    assert status == 0, said


def test_the_common_kernels_assemble(assembler: Assembler) -> None:
    status, said = assembler.assemble(tally.module(), "-arch", "sm_90a")
    assert status == 0, said


def test_a_kernel_that_does_not_assemble_costs_its_own_test(assembler: Assembler, tmp_path: Path) -> None:
    good = kernel(observed(load_test(str(LITMUS / "classic/IRIW+rlx.litmus"))), "t0").text
    bad = good.replace("t0(", "t1(").replace("ld.relaxed", "ld.relaxt", 1)
    source, target = tmp_path / "m.ptx", tmp_path / "m.cubin"
    source.write_text(module([bad, good, good.replace("t0(", "t2(")]))
    assemble(str(assembler.path), source, target)
    image = target.read_bytes()
    assert b"t0" in image
    assert b"t2" in image
    assert b".text.t1" not in image


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("classic/SB.sc", "another model"),
        ("proxies/Alias-surf+both-fences", "no fence.proxy.surface"),
        ("barriers/Bar.arrive+then-sync-early", "left over"),
        ("barriers/Bar+counts-differ", "expects undefined"),
        ("fences/SB+fence.sc.syss+other-gpu", "several GPUs"),
    ],
)
def test_what_a_chip_cannot_run_is_said(name: str, reason: str) -> None:
    file = next(iter(sorted(LITMUS.glob(f"{name}*.litmus"))))
    with pytest.raises(CannotEmit, match=reason):
        kernel(load_test(str(file)), "t0")


def test_the_plan_says_where_the_terms_are() -> None:
    _, row = entry(load_test(str(LITMUS / "classic/2+2W+rlx.litmus")), 0)
    assert row["free"]
    assert [w["label"] for w in row["watched"]] == ["x", "y"]
    assert all("object" in w for w in row["watched"])
    _, row = entry(load_test(str(LITMUS / "bulk/bulk-ring-one-slot.litmus")), 0)
    assert not row["free"]
    assert [w["slot"] for w in row["watched"]] == [0, 1]


def test_an_alias_is_another_address_of_its_target() -> None:
    """Early reads through both addresses are no part of a program that keeps them apart by alias fences."""
    made, row = entry(load_test(str(LITMUS / "proxies/MP+alias+writer-fence.litmus")), 0)
    assert [item.get("alias") for item in row["objects"]] == [None, None, 0]
    assert made.text.count("fence.proxy.alias") == 3
    made, _ = entry(load_test(str(LITMUS / "proxies/MP+alias+no-fence.litmus")), 0)
    assert "fence.proxy.alias" not in made.text


def test_formulas_survive_the_plan() -> None:
    program = load_test(str(LITMUS / "classic/MP+rlx+rlx.litmus"))
    encoded = formula.encode(program.condition.formula)
    sizes = {"P1:r0": 4, "P1:r1": 4}
    assert formula.holds(encoded, {"P1:r0": 1, "P1:r1": 0}, sizes)
    assert not formula.holds(encoded, {"P1:r0": 1, "P1:r1": 1}, sizes)
    assert formula.holds(["==", "x", -1], {"x": 0xFFFFFFFF}, {"x": 4})


@pytest.mark.parametrize("preset", [*FREE, *BOUND], ids=lambda p: p.name)
@pytest.mark.parametrize(
    ("ctas", "warps", "barriers", "block"), [(1, 2, 1, 384), (2, 1, 0, 0), (4, 1, 0, 0), (3, 3, 2, 1024)]
)
def test_launches_fit(preset, ctas: int, warps: int, barriers: int, block: int) -> None:
    free = preset in FREE
    block = 0 if free else block  # who has shared memory has barriers
    g = geometry(
        preset, ctas=ctas, warps=warps, barriers=barriers, block=block, slots=3, free=free, maps=False, registers=40
    )
    assert g.instances & (g.instances - 1) == 0
    assert g.block <= 1024
    assert g.copies * (1 + barriers) <= 16 or free
    assert g.shared <= 227 * 1024
    assert g.grid % ctas == 0


def test_the_parameter_has_a_place_for_every_field() -> None:
    assert settings.parameter_bytes(2, 2, 2) == settings.thread_at(2, 2, 1) + 16


def test_the_histogram_is_read_back() -> None:
    table = bytearray(tally.TABLE_BYTES)
    table[0:8], table[8:16] = (5).to_bytes(8, "little"), (7).to_bytes(8, "little")
    table[16:24], table[24:32] = (1).to_bytes(8, "little"), (0).to_bytes(8, "little")
    table[-16:-8] = (3).to_bytes(8, "little")
    assert tally.read(bytes(table), 2) == ({(1, 0): 7}, 3, 0)


# --- the committed results ----------------------------------------------------------------------------------


@pytest.mark.daily(days=3)
@pytest.mark.parametrize(
    ("chip", "device", "tests", "instances"),
    [
        ("h200", "NVIDIA H200", 7000, 10**11),
        ("h100", "NVIDIA H100 80GB HBM3", 900, 10**11),
        ("h200-x2", "2 x NVIDIA H200", 1600, 3 * 10**11),
    ],
)
def test_the_results_are_complete(chip: str, device: str, tests: int, instances: int) -> None:
    runs, found = observations(chip)
    assert {r.device for r in runs} == {device}
    assert len(found) > tests
    assert all(o.text for o in found.values())
    assert sum(o.instances for o in found.values()) > instances


CONTROLS = (
    "bulk-ring-one-slot-no-fence", "bulk-proxy-raw-no-fence", "bulk-multicast-does-not-publish-stores",
    "bulk-store-wait-by-another-thread", "cp-async-read-before-wait", "MP+rlx+rlx", "SB+rlx+rlx", "LB+rlx+rlx",
    "2+2W+rlx", "IRIW+rlx", "MP+membar.ctas+other-cta", "SB+fence.sc.ctas+other-cta",
)  # fmt: skip


@pytest.mark.daily
@pytest.mark.parametrize("name", CONTROLS)
def test_the_positive_controls_were_seen(name: str) -> None:
    _, found = observations()
    assert any(o.hits for o in found.values() if o.name.endswith(f"/{name}.litmus"))


@pytest.mark.parametrize("name", REREAD)
def test_the_assembler_was_seen_to_keep_what_it_had_read(name: str) -> None:
    """The text excludes it, and so does the model: were it otherwise, ``EXPLAINED`` should not name these."""
    _, found = observations("h100")
    [seen] = [o for o in found.values() if o.name.endswith(f"/Reread+{name}.litmus")]
    assert compare(as_seen(seen), seen, load_model("ptx-9.0")).contradicts


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("chip", ["h200", "h100", "h200-x2"])
def test_no_state_was_seen_that_the_model_forbids(chip: str, part: int) -> None:
    """A sample; ``python -m hardware.litmus.compare`` takes all."""
    _, found = observations(chip)
    model = load_model("ptx-9.0")
    for seen in [o for o in found.values() if o.states][60 * part :: 240]:
        compared = compare(as_seen(seen), seen, model)
        assert not compared.contradicts or compared.stem in EXPLAINED, seen.name
