"""Tasks that kill their process or exceed their time, for tests of pools; importable by other processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from mcheck.checking.run.case import Case, Settings
from mcheck.checking.run.inquiry import run_case
from mcheck.checking.run.result import Result


def falls(case: Case, settings: Settings) -> Result:
    """Kills its process if the test is called ``falls``, and once if it is called ``stumbles``; notes each attempt in
    the folder of the test.
    """
    path = Path(case.path)
    with open(path.parent / "attempts", "a", encoding="utf-8") as notes:
        notes.write(f"{path.stem}\n")
    attempts = (path.parent / "attempts").read_text(encoding="utf-8").split().count(path.stem)
    if path.stem == "falls" or (path.stem == "stumbles" and attempts == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    return run_case(case, settings)


def sleeps(case: Case, settings: Settings) -> Result:
    """Takes a tenth of a second longer than it needs to."""
    time.sleep(0.1)
    return run_case(case, settings)
