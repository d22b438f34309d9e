"""How many random examples Hypothesis makes: all of them, or a third in the quick tier, others in each run."""

from __future__ import annotations

import pytest
from hypothesis import settings

ALL, QUICK = 100, 33
"""Examples of a test that names no number."""


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.option.tier == "quick":
        settings.register_profile("quick", settings(), max_examples=QUICK)
        settings.load_profile("quick")


def examples(number: int) -> settings:
    """So many of them, whatever time each takes; in the quick tier a third."""
    return settings(deadline=None, max_examples=number * settings().max_examples // ALL)
