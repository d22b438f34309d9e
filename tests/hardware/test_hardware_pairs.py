"""Litmus tests on two GPUs: their kernels and the runner's host side, without a GPU."""

from __future__ import annotations

import ctypes
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from hardware.emit import CannotEmit
from hardware.litmus import device, pairs, tally
from hardware.litmus.kernel import MEETING, module
from hardware.litmus.observe import observed
from hardware.litmus.pair_families import pair_families
from hardware.litmus.pair_session import HOMES, ROUNDS, PairSession, geometry_of, settings_of
from mcheck.frontend import litmus
from mcheck.report.hardware_results import hash_text
from tests.assembler import Assembler

LITMUS = Path(__file__).parents[2] / "litmus"
FAMILIES = dict(pair_families())
SAMPLE = (
    "classic/CoRR+mmio", "atomics/Inc+syss+other-gpu", "scopes/ISA2+gpu+sys+two-gpus", "fences/SB+membar.gls+other-gpu",
    "kernels/K01-ready-flag-after-read-wait", "kernels/K02-exit-without-observing-remote-writes-fixed",
    "reduce/reduce-scope-gpu-across-gpus",
)  # fmt: skip


def row_of(name: str) -> tuple[str, dict[str, Any]]:
    """The kernels and the row of a test of the suites."""
    made, row = pairs.pair_entry(observed(litmus.load(str(LITMUS / f"{name}.litmus"))), 0)
    return "".join(m.text for m in made), row


@pytest.mark.daily
@pytest.mark.parametrize("name", SAMPLE)
def test_both_kernels_of_a_test_assemble(name: str, assembler: Assembler) -> None:
    text, row = row_of(name)
    assert all(f".visible .entry {entry}(" in text for entry in row["entries"])
    status, said = assembler.assemble(module([text]), "-arch", "sm_90a")
    assert status == 0, said


def test_generated_tests_assemble(assembler: Assembler) -> None:
    names = ("IRIW+readers-apart+sys-fence.sc.sys+gpu-ra", "R+sys+gpu-fence.acq_rel.cta", "LB+cta-ra+cta-ra")
    made = [pairs.pair_entry(litmus.parse(FAMILIES[name], name), n)[0] for n, name in enumerate(names)]
    status, said = assembler.assemble(module([k.text for both in made for k in both]), "-arch", "sm_90a")
    assert status == 0, said


def test_a_kernel_has_the_threads_of_its_gpu_alone() -> None:
    (first, second), row = pairs.pair_entry(litmus.load(str(LITMUS / "scopes/ISA2+gpu+sys+two-gpus.litmus")), 0)
    assert [k.text.count("// --- the test") for k in (first, second)] == row["own"] == [2, 1]
    assert "T2:" not in first.text
    assert "T0:" not in second.text
    assert "st.release.gpu" in first.text
    assert "st.release.gpu" not in second.text


def test_results_lie_with_the_gpu_that_writes_them() -> None:
    _, row = row_of("kernels/K01-ready-flag-after-read-wait")
    slots = {w["label"]: row["slot_gpus"][w["slot"]] for w in row["watched"] if "slot" in w}
    assert slots == {"reader:r0": 1, "reader:r1": 1, **{name: 0 for name in slots if not name.startswith("reader")}}


def test_a_test_that_waits_leaves_the_barrier_of_the_meeting() -> None:
    _, row = row_of("kernels/K01-ready-flag-after-read-wait")
    for setting in settings_of(row, list(HOMES)):
        assert geometry_of(row, setting.preset, 40).copies * (1 + row["barriers"]) <= MEETING
    _, row = row_of("scopes/CoRR+sys-other-gpu")
    for setting in settings_of(row, list(HOMES)):
        assert geometry_of(row, setting.preset, 40).rounds == ROUNDS


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("classic/MP+rlx+rlx", "not on two GPUs"),
        ("reduce/reduce-scope-sys-across-gpus", "another model"),
        ("reduce/reduce-relaxed-sys-across-gpus", "PTX 9.0 does not spell"),
    ],
)
def test_what_two_gpus_cannot_run_is_said(name: str, reason: str) -> None:
    with pytest.raises(CannotEmit, match=reason):
        row_of(name)


def test_generated_tests_are_many_and_differ() -> None:
    texts = {text.split("{", 1)[1] for text in FAMILIES.values()}
    assert len(texts) == len(FAMILIES) == len(list(pair_families()))
    places = [t.place.cta.gpu for t in litmus.parse(FAMILIES["IRIW+sys+sys"], "t").threads]
    assert places == [0, 1, 0, 1]


class TwoDrivers:
    """Stands for both drivers: memory is a count, and the table of the last launch has one state."""

    made: list[TwoDrivers]
    current: TwoDrivers
    log: list[tuple[int, str]]

    def __init__(self, number: int = 0) -> None:
        self.number, self.launches = number, 0
        self.device, self.version = "none", "13.0"
        self.use()

    def use(self) -> TwoDrivers:
        type(self).current = self
        return self

    def reach(self, peer: TwoDrivers) -> None:
        self.log.append((self.number, f"reach {peer.number}"))

    def allocate(self, size: int) -> int:
        return (1 + self.number) << 40

    def call(self, name: str, *arguments: Any, log: object = None) -> None:
        assert type(self).current is self, f"{name} goes to the other GPU"
        self.log.append((self.number, name))
        if name == "cuFuncGetAttribute":
            ctypes.cast(arguments[0], ctypes.POINTER(ctypes.c_int))[0] = 40

    def read(self, address: int, size: int) -> bytes:
        assert size == tally.TABLE_BYTES
        entry = struct.pack("<QQQQ", 7, 1000, 1, 0)
        return entry.ljust(size - 16, b"\0") + struct.pack("<QQ", 0, 0)


def test_the_host_sets_memory_then_waits_for_both_then_launches_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "Driver", TwoDrivers)
    monkeypatch.setattr(ctypes, "byref", ctypes.pointer)
    monkeypatch.setattr(device, "byref", ctypes.pointer)
    TwoDrivers.log = []
    _, row = row_of("fences/SB+fence.sc.syss+other-gpu")
    session = PairSession(b"", 1, list(HOMES))
    TwoDrivers.log.clear()
    seen = session.run({**row, "module": 0}, b"", 0)
    assert seen.by.keys() == {s.name for s in settings_of(row, list(HOMES))}
    assert seen.states == {(1, 0): 1000 * len(seen.by)}
    steps = [(gpu, name) for gpu, name in TwoDrivers.log if name in ("cuCtxSynchronize", "cuLaunchKernel")]
    waits = [(0, "cuCtxSynchronize"), (1, "cuCtxSynchronize")]
    both = [(0, "cuLaunchKernel"), (1, "cuLaunchKernel")]
    counting = [(0, "cuLaunchKernel"), (0, "cuCtxSynchronize")]
    assert steps == [*waits, *both, *waits, *counting] * len(seen.by)


@pytest.mark.parametrize(("values", "outside"), [([1, 1], 0), ([1, 0], 1)])
def test_states_are_held_against_the_model(values: list[int], outside: int, tmp_path: Path, capsys) -> None:
    name = "scopes/MP+rel.sys+acq.sys+other-gpu.litmus"
    text = (LITMUS / name).read_text()
    about = {"name": name, "hash": hash_text(text)}
    row = {**about, "pass": "1", "terms": ["P1:r0", "P1:r1"], "status": "ok", "states": [[values, 9]]}
    lines = [{**about, "text": text}, {**row, "by": {"late": [9, 9 * outside]}}]
    (tmp_path / "seen.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert pairs.tell(tmp_path) == outside
    assert ("NOT ALLOWED" in capsys.readouterr().out) == bool(outside)
    assert (tmp_path / "table.csv").read_text().count("\n") == 2
