"""Collects the tests to run from paths and expectation files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from mcheck.base.errors import InputError, Span
from mcheck.base.files import LOST_DIRECTORY, has_lost_directory, read_text_file
from mcheck.checking.run.case import Case

SUFFIX = ".litmus"
_VERDICTS = {"1": "pass", "0": "fail"}


def is_test(file: str) -> bool:
    """Whether a file in a folder is a litmus test, by its name."""
    return file.endswith(SUFFIX)


def collect_tests(
    paths: Iterable[str], expect: str | None = None, *, takes: Callable[[str], bool] = is_test
) -> list[Case]:
    """The tests under ``paths`` in a fixed order, each once, with the verdicts from the CSV file ``expect``.

    Without paths the rows of the CSV file are the tests. ``takes`` selects the files of a folder. A missing path, or a
    folder without tests, is an error: nothing passes by being absent.
    """
    rows = read_expectations(expect) if expect is not None else {}
    given = list(paths)
    if not given:
        return [Case(path, verdict) for path, verdict in rows.items()]
    wanted = {os.path.realpath(path): verdict for path, verdict in rows.items()}
    found: dict[str, Case] = {}
    for path in given:
        for file in _files(path, takes):
            real = os.path.realpath(file)
            found.setdefault(real, Case(file, wanted.get(real)))
    if rows and not any(case.expected for case in found.values()):
        raise InputError(f"none of the tests has a row in {expect}", hint="the rows' paths are relative to that file")
    return list(found.values())


def find_test(path: str) -> Case:
    """The one test at ``path``."""
    cases = collect_tests([path])
    if len(cases) != 1:
        raise InputError(f"{path} holds {len(cases)} tests", expected="one test")
    return cases[0]


def _files(path: str, takes: Callable[[str], bool]) -> list[str]:
    if os.path.isdir(path):
        found = [
            file
            for folder, _, names in os.walk(path, onerror=_unreadable)
            for name in names
            if takes(file := os.path.normpath(os.path.join(folder, name)))
        ]
        if not found:
            raise InputError(f"no {SUFFIX} file in {path}")
        return sorted(found, key=lambda file: file.split(os.sep))
    if not os.path.exists(path):
        raise InputError(LOST_DIRECTORY if has_lost_directory(path) else f"no such file or folder: {path}")
    return [path]


def _unreadable(error: OSError) -> None:
    raise InputError(f"cannot read {error.filename}: {error.strerror}")


def read_expectations(path: str) -> dict[str, str]:
    """The rows ``path,1`` (pass) and ``path,0`` (fail) of a CSV file; paths are relative to the file."""
    table = read_text(path)
    folder = os.path.dirname(path)
    rows: dict[str, str] = {}
    for number, line in enumerate(table.splitlines(), start=1):
        row = line.strip()
        if not row or row.startswith("#"):
            continue
        name, comma, value = row.rpartition(",")
        name, value = name.strip(), value.strip()
        if len(name) > 1 and name[0] == name[-1] == '"':
            name = name[1:-1].replace('""', '"')
        if not comma or not name or "\0" in name or value not in _VERDICTS:
            raise InputError(
                f"bad row {row!r}",
                Span(path, number, len(line) - len(line.lstrip()) + 1, len(row)),
                expected="path,1 (pass) or path,0 (fail)",
            )
        file = os.path.normpath(os.path.join(folder, name))
        if rows.setdefault(file, _VERDICTS[value]) != _VERDICTS[value]:
            span = Span(path, number, line.rindex(value) + 1, 1)
            raise InputError(f"{name} is expected both to pass and to fail", span)
    if not rows:
        raise InputError(f"{path} has no rows", expected="path,1 (pass) or path,0 (fail)")
    return rows


def read_text(path: str) -> str:
    """The contents of a UTF-8 file; raises ``InputError`` if it cannot be read."""
    try:
        return read_text_file(path, encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start})") from None
