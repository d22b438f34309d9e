"""Answers of the explicit engine about the suites of ``litmus/``, with which several folders compare.

Each is computed once in a run: what one worker of xdist has computed, the others find in a folder of the run.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.engines.explicit.engine import answer
from mcheck.frontend.litmus import load

LITMUS = Path(__file__).parents[1] / "litmus"

model_of = cache(load_model)


@pytest.fixture(scope="session")
def enumerated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Answer]:
    """The answer about a file of a suite under the model that it names, ptx-9.0 if none."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "enumerated"

    @cache
    def enumerate_once(path: Path) -> Answer:
        kept = folder / path.relative_to(LITMUS).with_suffix(".pickle")
        if kept.exists():
            found: Answer = pickle.loads(kept.read_bytes())
            return found
        program = load(str(path))
        found = answer(program, model_of(program.model or "ptx-9.0"), timeout=60)
        kept.parent.mkdir(parents=True, exist_ok=True)
        written = kept.with_suffix(f".{os.getpid()}")
        written.write_bytes(pickle.dumps(found))
        written.replace(kept)  # at once: another worker may look for it
        return found

    return enumerate_once
