"""What chips showed, which a process reads once."""

from __future__ import annotations

from functools import cache

from mcheck.report.hardware_results import Observation, Run, load, observation_file


@cache
def observations(chip: str = "h200") -> tuple[list[Run], dict[str, Observation]]:
    """The runs on a chip, and what was seen by the hash of the test."""
    return load(observation_file(chip))
