"""Where the files of models are, and what they say.

A shipped model is found in the installed package (``mcheck/_data/models``) or, in a checkout, in ``models/`` at the
root of the repository.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from mcheck.base.errors import Span
from mcheck.base.files import MEBIBYTE, read_text_file
from mcheck.cat.messages import error

if TYPE_CHECKING:
    from pathlib import Path

HERE = os.path.dirname(os.path.realpath(__file__))
STANDARD = os.path.join(HERE, "stdlib.cat")
"""Definitions that every model may use."""
MODEL_BYTES = MEBIBYTE


def models_directory() -> Path:
    """The folder of the shipped models."""
    from pathlib import Path  # a plain run needs none

    return Path(models_folder())


@lru_cache(maxsize=1)
def models_folder() -> str:
    """The path of the folder of the shipped models."""
    package = os.path.dirname(HERE)
    packaged = os.path.join(package, "_data", "models")
    return packaged if os.path.isdir(packaged) else os.path.join(os.path.dirname(package), "models")


def model_names() -> list[str]:
    """The shipped models, by name."""
    return sorted(path.stem for path in models_directory().glob("*.cat"))


def find_included_file(name: str, path: str) -> str | None:
    """The file that ``include "name"`` means in the model at ``path``: beside it, or one that comes with mcheck."""
    folders = (os.path.dirname(path), models_folder(), HERE)
    return next((found for folder in folders if os.path.isfile(found := os.path.join(folder, name))), None)


def read_model_text(path: str, span: Span | None = None) -> str:
    """The text of a file, whose name stands at ``span``; raises ``InputError`` if it cannot be read."""
    try:
        return read_text_file(path, MODEL_BYTES)
    except (OSError, ValueError) as problem:
        raise error("CAT004", span, what=path, why=explain_failure(problem)) from None


def explain_failure(problem: OSError | ValueError) -> str:
    """Why a file could not be read, as part of a sentence."""
    if isinstance(problem, UnicodeDecodeError):
        return "it is not UTF-8 text"
    reason = (problem.strerror if isinstance(problem, OSError) else None) or str(problem)
    return reason[:1].lower() + reason[1:]
