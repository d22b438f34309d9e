"""Where the files of models are, and what they say.

A shipped model is found in the installed package (``mcheck/_data/models``) or, in a checkout, in ``models/`` at the
root of the repository.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from mcheck.base.errors import Span
from mcheck.base.files import MEBIBYTE, read_text_file
from mcheck.cat.messages import error

HERE = Path(__file__).resolve().parent
STANDARD = HERE / "stdlib.cat"
"""Definitions that every model may use."""
MODEL_BYTES = MEBIBYTE


@lru_cache(maxsize=1)
def models_directory() -> Path:
    """The folder of the shipped models."""
    packaged = HERE.parent / "_data" / "models"
    return packaged if packaged.is_dir() else HERE.parent.parent / "models"


def model_names() -> list[str]:
    """The shipped models, by name."""
    return sorted(path.stem for path in models_directory().glob("*.cat"))


def find_included_file(name: str, path: str) -> Path | None:
    """The file that ``include "name"`` means in the model at ``path``: beside it, or one that comes with mcheck."""
    folders = (Path(path).parent, models_directory(), HERE)
    return next((folder / name for folder in folders if is_file(folder / name)), None)


def is_file(path: Path) -> bool:
    """Whether there is a file; a name that no file can have is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


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
