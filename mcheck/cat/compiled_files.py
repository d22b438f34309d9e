"""Compiled models on disk, as Python keeps bytecode: reading and compiling a shipped model takes a fifth of the time of
a small test.

A file holds the texts of a model, its includes among them, and its tape. It is used only if all texts are still the
same, byte for byte, and if the code that compiled it is the same, by the sizes and times of change of its files, which
is what Python trusts bytecode by. It consists of plain values (``marshal``) with a checksum; a file that belongs to
somebody else, or that others may write, is not read. Whatever is wrong, the model is read from its texts.
"""

from __future__ import annotations

import marshal
import os
import sys
from binascii import crc32
from contextlib import suppress
from functools import lru_cache
from typing import Any

from mcheck import __version__
from mcheck.base.errors import McheckError
from mcheck.base.user_cache import user_cache_folder
from mcheck.cat.algebra.compiled_models import remember_tape, tape_of
from mcheck.cat.algebra.tape import Instr, Tape, TapeCheck
from mcheck.cat.ast import Included, Model, Texts, make_compiled_model
from mcheck.cat.model_files import HERE, find_included_file, read_model_text

CHECKSUM = 4
"""Bytes of the checksum at the start of a file."""


def recall(path: str, text: str) -> Model | None:
    """The model at ``path``, whose text this is, if it was compiled before."""
    try:
        code, wanted, head, included, tape = marshal.loads(_read(_file_of(path)))  # noqa: S302 - the user's own file
        found = tuple(Included(*each) for each in included)
        if (code, wanted) != (_code(), (path, text)) or not all(map(_is_same, found)):
            return None
        model = make_compiled_model(*head, texts=Texts(path, text, found), reread=_read_again)
        remember_tape(model, _unpack_tape(*tape))
    except (OSError, ValueError, EOFError, TypeError, McheckError):  # there is none, or it is damaged
        return None
    return model


def keep(model: Model) -> None:
    """Keep the compiled model for later processes, if the folder can be written."""
    texts = model.texts
    if texts is None:
        return
    included = tuple((i.source, i.name, i.path, i.real, i.text) for i in texts.included)
    head = (model.name, model.path, model.options, model.doc, model.digest)
    tape = _pack_tape(tape_of(model))
    with suppress(OSError):
        data = marshal.dumps((_code(), (texts.path, texts.text), head, included, tape))
        _write(_file_of(texts.path), crc32(data).to_bytes(CHECKSUM, "big") + data)


def _is_same(included: Included) -> bool:
    """Whether an include still means the same file, with the same text."""
    path = find_included_file(included.name, included.source)
    return (
        path == included.path
        and os.path.realpath(included.path) == included.real
        and read_model_text(included.path) == included.text
    )


def _read_again(texts: Texts) -> Model:
    from mcheck.cat import model_reading  # the parser, which a model that was compiled before does not need

    return model_reading.parse_model(texts.text, texts.path, texts.included)


# --- files ------------------------------------------------------------------------------------------------------


def _file_of(path: str) -> str:
    """Models, checkouts and versions of Python have files of their own."""
    who = crc32(repr((path, __version__, sys.implementation.cache_tag)).encode("utf-8", "surrogatepass"))
    stem = os.path.splitext(os.path.basename(path))[0]
    return os.path.join(user_cache_folder("models"), f"{stem}-{who:08x}.compiled")


@lru_cache(maxsize=1)
def _code() -> tuple[tuple[str, int, int], ...]:
    """The files of this room with their sizes and times of change: the code, and the definitions that all may use."""
    return tuple(
        (entry.path, entry.stat().st_size, entry.stat().st_mtime_ns)
        for folder in (HERE, os.path.join(HERE, "algebra"))
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)
        if entry.name.endswith((".py", ".cat"))
    )


def _read(path: str) -> bytes:
    """The contents of a file; raises ``ValueError`` if it is not the user's own, or damaged."""
    with open(path, "rb") as file:
        about = os.fstat(file.fileno())
        if hasattr(os, "getuid") and (about.st_uid != os.getuid() or about.st_mode & 0o022):
            raise ValueError
        data = file.read()
    if crc32(data[CHECKSUM:]).to_bytes(CHECKSUM, "big") != data[:CHECKSUM]:
        raise ValueError
    return data[CHECKSUM:]


def _write(path: str, data: bytes) -> None:
    """Write a file that others see whole or not at all."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    part = f"{path}.{os.getpid()}"
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        os.replace(part, path)
    except OSError:
        with suppress(OSError):
            os.unlink(part)
        raise


# --- tapes ------------------------------------------------------------------------------------------------------


def _pack_tape(tape: Tape) -> tuple[Any, ...]:
    return (
        [(i.op, i.a, i.b, i.name) for i in tape.code],
        tape.groups,
        tape.group_of,
        [(a.name, a.test, a.negated, a.node, a.role, a.monotone) for a in tape.checks],
        tape.total_co,
        tape.free_co,
        tape.flags_on,
        tape.bases,
        tape.names,
        tape.forbids,
    )


def _unpack_tape(code: list[Any], groups: Any, group_of: Any, checks: list[Any], *others: Any) -> Tape:
    return Tape([Instr(*i) for i in code], groups, group_of, [TapeCheck(*a) for a in checks], *others)
