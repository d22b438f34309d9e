"""The benchmark scripts: their judgement, and that they are polite where there is nothing to compare with."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from benchmarks.families import Row, apart, measure

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
MIB = 1 << 20


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def families() -> ModuleType:
    return script("families")


@pytest.fixture(scope="module")
def promela() -> ModuleType:
    return script("promela")


TABLES = SimpleNamespace(
    HERD7={"SB": {2: (4, 4, 0.5), 3: (8, 8, 20.0), 4: None}},
    HERD7_VERDICT={"COW": {1: (1, 0.1), 2: (2, 2.0), 3: None}},
)


def test_rows(families: ModuleType) -> None:
    rows = [(r.family, r.n, r.verdict_only, r.states, r.seconds, r.largest) for r in families.rows(TABLES)]
    assert rows == [
        ("SB", 2, False, 4, 0.5, False),
        ("SB", 3, False, 8, 20.0, True),
        ("SB", 4, False, None, None, False),
        ("COW", 1, True, None, 0.1, False),
        ("COW", 2, True, None, 2.0, False),
        ("COW", 3, True, None, None, False),
        ("RING", 8, True, None, None, False),
    ]


@pytest.mark.parametrize(
    ("row", "verdict", "states", "seconds", "memory", "missed"),
    [
        (("SB", 3, False, 8, 20.0, True), "pass", 8, 1.9, 90, []),
        (("SB", 3, False, 8, 20.0, True), "pass", 8, 2.1, 90, ["not 10 times as fast"]),
        (("SB", 3, False, 8, 20.0, False), "pass", 8, 30.0, 90, []),
        (("SB", 3, False, 8, 20.0, False), "pass", 7, 1.0, 90, ["states differ"]),
        (("SB", 3, False, 8, 20.0, False), "fail", 8, 1.0, 90, ["verdict fail, not pass"]),
        (("SBF", 8, False, None, None, False), "fail", 9, 9.9, 90, []),
        (("SBF", 8, False, None, None, False), "fail", 9, 10.1, 90, ["not under 10 s"]),
        (("COW", 2, True, None, 2.0, False), "pass", 1, 1.9, 90, []),
        (("COW", 2, True, None, 2.0, False), "pass", 1, 2.1, 90, ["slower than herd7"]),
        (("COW", 1, True, None, 0.1, False), "pass", 1, 2.1, 90, []),
        (("RING", 8, True, None, None, False), "fail", 1, 1.0, 1024, ["1 GiB or more"]),
    ],
)
def test_targets(
    families: ModuleType, row: tuple, verdict: str, states: int, seconds: float, memory: int, missed: list[str]
) -> None:
    ours = families.Measured(verdict, states, seconds, memory * MIB)
    assert families.missed(families.Row(*row), ours) == missed


def test_a_row_is_measured() -> None:
    text = (
        "PTX SB-1\n{ x=0; }\n P0@cta 0,gpu 0 ;\n st.relaxed.gpu x, 1 ;\n ld.relaxed.gpu r0, x ;\nexists (P0:r0 == 1)\n"
    )
    ours = apart(measure, text, Row("SB", 1, False), "ptx-7.5", 60.0)
    assert (ours.verdict, ours.states) == ("pass", 1)
    assert 0 < ours.seconds < 60
    assert 5 * MIB < ours.memory < 1024 * MIB


@pytest.mark.daily
@pytest.mark.parametrize(("script", "option"), [("families", "--families"), ("compat", "--folder")])
def test_nothing_to_compare_with(script: str, option: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", f"benchmarks.{script}", option, tmp_path / "absent"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=BENCHMARKS.parent)
    assert done.returncode == 0
    assert done.stdout.startswith("nothing to ")


LATE = """\
Interrupted
State-vector 208 byte, depth reached 701, errors: 0
  5874698 states, stored
 1158.142\ttotal actual memory usage
"""


@pytest.mark.parametrize(
    ("out", "late", "why"),
    [
        (LATE, True, "time"),
        (LATE, False, ""),
        ("error: max search depth too small\n" + LATE, False, "depth"),
        ("pan: reached -DMEMLIM bound\n" + LATE, False, "memory"),
        ("pan: error, VECTORSZ too small", False, "error"),
    ],
)
def test_what_spin_says(promela: ModuleType, out: str, late: bool, why: str) -> None:
    got = promela.read(out, 60.0, late=late)
    assert got.why == why
    assert (got.states, got.seconds, got.mebibytes) == ((0, 60.0, 0) if why == "error" else (5874698, 60.0, 1158.142))


WAIT_FOR_FREED = "MORE(k) && PASSED(EMPTY, 1 - PARITY(k))"
WAIT_FOR_FILLED = "MORE(k) && PASSED(FULL, PARITY(k))"


@pytest.mark.daily
@pytest.mark.parametrize(
    ("sizes", "words", "was", "becomes", "sound"),
    [
        ({"K": 5, "S": 2, "W": 2}, (), "", "", True),
        ({"K": 5, "S": 2, "W": 2}, ("MERGED",), "", "", True),
        ({"K": 3, "S": 2, "W": 1, "C": 2}, ("MERGED",), "", "", True),
        ({"K": 5, "S": 2, "W": 2}, (), WAIT_FOR_FREED, "MORE(k)", False),
        ({"K": 5, "S": 2, "W": 2}, ("MERGED",), WAIT_FOR_FILLED, "MORE(k)", False),
        ({"K": 5, "S": 2, "W": 2}, (), "freed[n].pending = C * W", "freed[n].pending = C * W + 1", False),
        ({"K": 3, "S": 2, "W": 1, "C": 2}, (), "(1 << C) - 1", "1", False),
    ],
)
def test_the_promela_model(
    promela: ModuleType, tmp_path: Path, sizes: dict, words: tuple, was: str, becomes: str, sound: bool
) -> None:
    if promela.missing() is not None:
        pytest.skip(f"{promela.missing()} is not installed")
    text = promela.MODEL.read_text(encoding="utf-8")
    assert was in text
    model = tmp_path / "ring.pml"
    model.write_text(text.replace(was, becomes) if was else text, encoding="utf-8")
    got = promela.search(sizes, words, limit=30, mebibytes=512, model=model, optimise="-O0")
    assert (got.why, got.errors == 0) == ("", sound)
    assert got.states > 10 or not sound
