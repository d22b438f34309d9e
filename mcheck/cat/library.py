"""Models by name or path, each read once per process; the shipped ones compiled once per machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache

from mcheck.base.files import is_in_folder_of
from mcheck.cat import compiled_files
from mcheck.cat.ast import Included, Model, Texts
from mcheck.cat.messages import error, suggest
from mcheck.cat.model_files import explain_failure, model_names, models_folder, read_model_text


def load_model(name_or_path: str) -> Model:
    """The model called ``name_or_path``, or that of the file: anything with a slash or ending in ``.cat`` is a file.

    Names that were given texts (``register_models``) stand for those.
    """
    if name_or_path in _GIVEN:
        return _from_texts(_GIVEN[name_or_path])
    is_path = _is_path(name_or_path)
    path = name_or_path if is_path else os.path.join(models_folder(), f"{name_or_path}.cat")
    if not is_path and not os.path.isfile(path):
        known = model_names()
        near = suggest(name_or_path, known)
        listed = f"the models are {', '.join(known)}; or give the path of a .cat file"
        raise error("CAT042", None, what=name_or_path, hint=f"{near} {listed}" if near else listed)
    try:
        stamp = os.stat(path).st_mtime_ns
    except (OSError, ValueError) as problem:
        raise error("CAT004", None, what=name_or_path, why=explain_failure(problem)) from None
    return _load(path if ".." in path else os.path.normpath(path), stamp)


def load_test_model(name: str, test: str) -> Model:
    """The model that the test at the path ``test`` names: a shipped one, or a file in the folder of the test."""
    path = test_model_name(name, test)
    if path not in _GIVEN and _is_path(name) and not (os.path.isfile(path) and is_in_folder_of(path, test)):
        raise error("CAT048", None, what=name, hint="--model FILE.cat takes one from anywhere")
    return load_model(path)


def test_model_name(name: str, test: str) -> str:
    """What ``load_model`` knows the model by that the test at the path ``test`` names."""
    return os.path.join(os.path.dirname(test), name) if _is_path(name) else name


def _is_path(name: str) -> bool:
    return name.endswith(".cat") or "/" in name or os.sep in name


@lru_cache(maxsize=32)
def _load(path: str, stamp: int) -> Model:
    """``stamp`` is the time of the file's last change: a model edited between two calls is read again."""
    del stamp
    text = read_model_text(path)
    shipped = os.path.dirname(path) == models_folder()
    known = compiled_files.recall(path, text) if shipped else None
    if known is not None:
        return known
    model = parse_model(text, path)
    if shipped:
        compiled_files.keep(model)
    return model


_GIVEN: dict[str, Texts] = {}


def register_models(models: Mapping[str, Texts]) -> None:
    """From now on these names, and no others, stand for these texts in this process: models from elsewhere."""
    _GIVEN.clear()
    _GIVEN.update(models)


@lru_cache(maxsize=32)
def _from_texts(texts: Texts) -> Model:
    return parse_model(texts.text, texts.path, texts.included)


def parse_model(text: str, path: str, given: tuple[Included, ...] = ()) -> Model:
    """The checked model of ``text``; ``path`` names it in messages and is where its includes are looked for first,
    after those that are ``given`` with it.
    """
    from mcheck.cat import model_reading  # the parser, which a model that was compiled before does not need

    return model_reading.parse_model(text, path, given)


def full_text(name_or_path: str) -> str:
    """The text of a model with that of its includes in their places: a file that needs no other."""
    from mcheck.cat import model_reading

    return model_reading.full_text(load_model(name_or_path))
