"""From the text of a model to the checked model: includes and vocabularies are read with it."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache

from mcheck.base.errors import Span
from mcheck.base.files import is_in_folder_of
from mcheck.base.records import replace
from mcheck.cat.ast import Included, Model, Texts
from mcheck.cat.check import Checker, Include
from mcheck.cat.infer import evaluate_condition
from mcheck.cat.messages import error
from mcheck.cat.model_files import HERE, STANDARD, find_included_file, models_folder, read_model_text
from mcheck.cat.parser import parse
from mcheck.cat.scanner import Source
from mcheck.cat.syntax import File, IfStatement, IncludeStatement, Statement


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
        model = checker.model(file, file.name or os.path.splitext(os.path.basename(path))[0])
        texts = Texts(path, text, tuple(includes.found.values()))
        return replace(model, texts=texts, digest=_digest(model.name, text, *(i.text for i in texts.included)))
    except RecursionError:
        raise error("CAT015", source.span(0, 1)) from None


def _digest(*texts: str) -> str:
    found = hashlib.sha256()
    for part in texts:
        found.update(f"{len(part)}\0{part}".encode("utf-8", "surrogatepass"))
    return found.hexdigest()


def full_text(model: Model) -> str:
    """The text of a model with that of its includes in their places: a file that needs no other."""
    path = model.path
    return _spliced(parse(Source(path, read_model_text(path))), (os.path.realpath(path),), _Includes(path))


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
    path = os.path.join(HERE, f"{name}.cat")
    return parse(Source(path, read_model_text(path)))


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
            whole = f"{name}.cat"
            there = find_included_file(whole, source.path) is not None
            raise error("CAT040", span, what=name, hint=f"did you mean {whole}?" if there else None)
        if not any(is_in_folder_of(path, owner) for owner in (self._model, *_shipped_files())):
            raise error("CAT049", span, what=name)
        return Included(source.path, name, path, os.path.realpath(path), read_model_text(path, span))


def _shipped_files() -> tuple[str, str]:
    """Files of the folders with what comes with mcheck."""
    return STANDARD, os.path.join(models_folder(), "any.cat")
