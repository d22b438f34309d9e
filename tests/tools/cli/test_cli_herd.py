"""Results in the words of herd."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.cli.conftest import Done

Run = Callable[..., Done]
MP = """PTX MP
{{ x = 0; y = 0; }}
 P0@cta 0,gpu 0          | P1@cta 1,gpu 0          ;
 st.relaxed.gpu x, 1     | ld.relaxed.gpu r0, y    ;
 st.relaxed.gpu y, 1     | ld.relaxed.gpu r1, x    ;
{condition}
"""


def block(mcheck: Run, tmp_path: Path, condition: str, *options: str) -> list[str]:
    path = tmp_path / "MP.litmus"
    path.write_text(MP.format(condition=condition), encoding="utf-8")
    said = mcheck("run", path, "--format", "herd", *options).out
    return re.sub(r"Time MP \d+\.\d\d", "Time MP 0.00", said).splitlines()


def test_a_block_has_states_and_observation(mcheck: Run, tmp_path: Path) -> None:
    assert block(mcheck, tmp_path, r"exists (P1:r0 == 1 /\ P1:r1 == 0)") == [
        "Test MP Allowed",
        "States 4",
        "P1:r0=0; P1:r1=0;",
        "P1:r0=0; P1:r1=1;",
        "P1:r0=1; P1:r1=0;",
        "P1:r0=1; P1:r1=1;",
        "Ok",
        "Witnesses",
        "Positive: 1 Negative: 3",
        r"Condition exists (P1:r0 == 1 /\ P1:r1 == 0)",
        "Observation MP Sometimes 1 3",
        "Time MP 0.00",
        "",
    ]


@pytest.mark.parametrize(
    ("condition", "kind", "judged", "observed"),
    [
        ("~exists (P1:r0 == 2)", "Forbidden", "Ok", "Never 0 2"),
        ("forall (P1:r0 == 0)", "Required", "No", "Sometimes 1 1"),
        ("exists (P1:r0 < 2)", "Allowed", "Ok", "Always 2 0"),
    ],
)
def test_the_observation_counts_states(
    mcheck: Run, tmp_path: Path, condition: str, kind: str, judged: str, observed: str
) -> None:
    lines = block(mcheck, tmp_path, condition)
    assert lines[0] == f"Test MP {kind}"
    assert judged in lines
    assert f"Observation MP {observed}" in lines


def test_a_test_without_an_answer_has_no_observation(mcheck: Run, tmp_path: Path) -> None:
    lines = block(mcheck, tmp_path, "exists (P1:r0 == 1)", "--timeout", "0.000001")
    assert lines[0] == "Test MP Allowed"
    assert lines[1].startswith("(* unknown: ")
    assert not any("Observation" in line for line in lines)
