"""``mcheck run`` for many tests."""

from __future__ import annotations

from mcheck.checking.run.case import DEFAULT_MODEL, Settings
from mcheck.checking.run.inquiry import run_case
from mcheck.checking.run.single import crashed_result, load_model
from mcheck.checking.suite import Command


def preload(settings: Settings) -> None:
    """Imports what every test needs and reads the model, before workers are forked."""
    import mcheck.frontend.litmus  # noqa: F401 - imported for the workers
    from mcheck.checking.policy import engines

    engines.preload()
    load_model(settings.model or DEFAULT_MODEL)


RUN = Command(name="run", task=run_case, lost=crashed_result, preload=preload)
