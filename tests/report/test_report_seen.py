"""What a chip showed stands beside the outcomes of tests that it ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcheck.frontend.litmus import parse
from mcheck.report.site.hardware_counts import find_hardware_counts
from tests.hardware.observations import observations


@pytest.mark.daily(days=3, least=0)
def test_counts_of_a_state() -> None:
    _, found = observations()
    observation = next(o for o in found.values() if o.name.endswith("/MP+fence.acq_rels.litmus"))
    seen = find_hardware_counts(parse(observation.text, observation.name))
    assert seen is not None
    assert seen.count((("P1:r0", 1), ("P1:r1", 0))) == 0
    assert seen.count((("P1:r0", 1), ("P1:r1", 1))) > 10**6
    assert seen.count((("P1:r0", "unknown"), ("P1:r1", "unknown"))) == observation.instances
    assert seen.summarise([(("P1:r0", 1), ("P1:r1", 1))]).startswith("Observed on an NVIDIA H200")


def test_another_text_was_not_run(tmp_path: Path) -> None:
    _, found = observations()
    observation = next(iter(found.values()))
    assert find_hardware_counts(parse(observation.text + "\n", observation.name)) is None
