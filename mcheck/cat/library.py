"""Where models come from: shipped names, paths, includes.

A shipped model is found in the installed package (``mcheck/_data/models``) or, in a checkout, in ``models/`` at the
root of the repository.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from mcheck.base.errors import Span
from mcheck.base.files import MEBIBYTE, is_in_folder_of, read_text_file
from mcheck.cat.ast import Included, Model, Texts
from mcheck.cat.check import Checker, Include
from mcheck.cat.infer import evaluate_condition
from mcheck.cat.messages import error, suggest
from mcheck.cat.parser import parse
from mcheck.cat.scanner import Source
from mcheck.cat.syntax import File, IfStatement, IncludeStatement, Statement

_HERE = Path(__file__).resolve().parent
STANDARD = _HERE / "stdlib.cat"
"""Definitions that every model may use."""
MODEL_BYTES = MEBIBYTE


@lru_cache(maxsize=1)
def models_directory() -> Path:
    """The folder of the shipped models."""
    packaged = _HERE.parent / "_data" / "models"
    return packaged if packaged.is_dir() else _HERE.parent.parent / "models"


def model_names() -> list[str]:
    """The shipped models, by name."""
    return sorted(path.stem for path in models_directory().glob("*.cat"))


def load_model(name_or_path: str) -> Model:
    """The model called ``name_or_path``, or that of the file: anything with a slash or ending in ``.cat`` is a file.

    Names that were given texts (``register_models``) stand for those.
    """
    if name_or_path in _GIVEN:
        return _from_texts(_GIVEN[name_or_path])
    shipped = models_directory() / f"{name_or_path}.cat"
    is_path = _is_path(name_or_path)
    path = Path(name_or_path) if is_path else shipped
    if not is_path and not _is_file(shipped):
        known = model_names()
        near = suggest(name_or_path, known)
        listed = f"the models are {', '.join(known)}; or give the path of a .cat file"
        raise error("CAT042", None, what=name_or_path, hint=f"{near} {listed}" if near else listed)
    try:
        stamp = path.stat().st_mtime_ns
    except (OSError, ValueError) as problem:
        raise error("CAT004", None, what=name_or_path, why=_reason(problem)) from None
    return _load(str(path), stamp)


def load_test_model(name: str, test: str) -> Model:
    """The model that the test at the path ``test`` names: a shipped one, or a file in the folder of the test."""
    path = test_model_name(name, test)
    if path not in _GIVEN and _is_path(name) and not (_is_file(Path(path)) and is_in_folder_of(path, test)):
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
    return parse_model(_read(path), path)


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
    source = Source(path, text)
    try:
        file = parse(source)
        if not file.statements:
            raise error("CAT016", source.span(0, 1), hint="it needs a check, such as: acyclic po | rf | co as SC")
        includes = _Includes(path, given)
        checker = Checker(includes, _vocabulary)
        checker.file(_library("stdlib"), library=True)
        checker.final = checker.scope["FW"]
        checker.file(file, (os.path.realpath(path),))
        model = checker.model(file, file.name or Path(path).stem)
        texts = Texts(path, text, tuple(includes.found.values()))
        return replace(model, texts=texts, digest=_digest(model.name, text, *(i.text for i in texts.included)))
    except RecursionError:
        raise error("CAT015", source.span(0, 1)) from None


def _digest(*texts: str) -> str:
    found = hashlib.sha256()
    for part in texts:
        found.update(f"{len(part)}\0{part}".encode("utf-8", "surrogatepass"))
    return found.hexdigest()


def full_text(name_or_path: str) -> str:
    """The text of a model with that of its includes in their places: a file that needs no other."""
    path = load_model(name_or_path).path
    return _spliced(parse(Source(path, _read(path))), (os.path.realpath(path),), _Includes(path))


def _spliced(file: File, chain: tuple[str, ...], include: Include) -> str:
    text = file.source.text
    for statement in reversed(_included(file.statements)):
        inner, link = include(statement, file.source, chain)
        part = _spliced(inner, (*chain, link), include)[inner.title_end :].strip()
        text = f"{text[: statement.keyword]}{part}{text[statement.end :]}"
    return text


def _included(statements: tuple[Statement, ...]) -> list[IncludeStatement]:
    """The includes that are followed, in the order of the text; of an ``if`` those of the branch that is taken."""
    found: list[IncludeStatement] = []
    for statement in statements:
        if isinstance(statement, IncludeStatement):
            found.append(statement)
        elif isinstance(statement, IfStatement):
            found += _included(statement.yes if evaluate_condition(statement.condition) else statement.no)
    return found


def _vocabulary(file: File, *, own: bool) -> list[File]:
    """What a file's words say of the architecture that it was written for; ``own``: it is the model's own file.

    A library of several architectures names the fence of x86 as well, so that one alone says nothing of ``A``.
    """
    if not file.words & {"MFENCE", "mfence"}:
        return []
    return [_library("x86"), *([_library("x86-atomics")] if own else [])]


@lru_cache(maxsize=4)
def _library(name: str) -> File:
    path = _HERE / f"{name}.cat"
    return parse(Source(str(path), path.read_text(encoding="utf-8")))


class _Includes:
    """The files that one model includes, each read once however often it is included."""

    def __init__(self, model: str, given: tuple[Included, ...] = ()) -> None:
        self._model = model
        self._files: dict[str, File] = {}
        self.found = {(i.source, i.name): i for i in given}
        """What was read, in the order in which it was first included."""

    def __call__(self, statement: IncludeStatement, source: Source, chain: tuple[str, ...]) -> tuple[File, str]:
        """The file of an ``include`` in ``source``, and its path to add to ``chain``, the files being read."""
        span = source.span(statement.start, statement.end)
        found = self.found.get((source.path, statement.file)) or self._new(statement.file, source, span)
        if found.real in chain:
            raise error("CAT041", span, what=statement.file)
        self.found[source.path, statement.file] = found
        if found.path not in self._files:
            self._files[found.path] = parse(Source(found.path, found.text))
        return self._files[found.path], found.real

    def _new(self, name: str, source: Source, span: Span) -> Included:
        """The file that ``source`` includes by this name."""
        path = find_included_file(name, source.path)
        if path is None:
            raise error("CAT040", span, what=name)
        if not any(is_in_folder_of(str(path), owner) for owner in (self._model, *_shipped_files())):
            raise error("CAT049", span, what=name)
        return Included(source.path, name, str(path), os.path.realpath(path), _read(str(path), span))


def _shipped_files() -> tuple[str, str]:
    """Files of the folders with what comes with mcheck."""
    return str(STANDARD), str(models_directory() / "any.cat")


def find_included_file(name: str, path: str) -> Path | None:
    """The file that ``include "name"`` means in the model at ``path``: beside it, or one that comes with mcheck."""
    folders = (Path(path).parent, models_directory(), _HERE)
    return next((folder / name for folder in folders if _is_file(folder / name)), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _read(path: str, span: Span | None = None) -> str:
    try:
        return read_text_file(path, MODEL_BYTES)
    except (OSError, ValueError) as problem:
        raise error("CAT004", span, what=path, why=_reason(problem)) from None


def _reason(problem: OSError | ValueError) -> str:
    if isinstance(problem, UnicodeDecodeError):
        return "it is not UTF-8 text"
    reason = (problem.strerror if isinstance(problem, OSError) else None) or str(problem)
    return reason[:1].lower() + reason[1:]
