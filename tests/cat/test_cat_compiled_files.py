"""Compiled models on disk: they are what the texts say, and are read only where nothing has changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mcheck.cat import compiled_files, load_model, model_files, model_names, parse_model
from mcheck.cat.algebra.compiled_models import tape_of
from mcheck.cat.ast import Model


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "mcheck" / "models"


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A copy of the shipped models, which a test may change."""
    return Path(shutil.copytree(model_files.models_directory(), tmp_path / "models"))


def read(path: Path) -> Model:
    return parse_model(path.read_text(), str(path))


def kept(path: Path) -> Model | None:
    compiled_files.keep(read(path))
    return compiled_files.recall(str(path), path.read_text())


@pytest.mark.parametrize("name", model_names())
def test_a_model_comes_back_as_it_was_read(folder: Path, models: Path, name: str) -> None:
    path = models / f"{name}.cat"
    model = read(path)
    compiled_files.keep(model)
    back = compiled_files.recall(str(path), path.read_text())
    assert back is not None
    assert tape_of(back) == tape_of(model)
    assert back.digest == model.digest
    assert back.texts == model.texts
    assert back == model, "with the statements, which are read again"
    assert [file.stat().st_mode & 0o777 for file in folder.iterdir()] == [0o600]


def edit_included(path: Path) -> None:
    axioms = path.parent / "ptx-9" / "axioms.cat"
    axioms.write_text(axioms.read_text() + "\n")


def add_nearer_include(path: Path) -> None:
    """A file of the standard library's folder is found beside the model now."""
    (path.parent / "cos.cat").write_text("(* none *)\nlet nothing = 0\n")


def damage(path: Path) -> None:
    (file,) = written_by(path)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def cut(path: Path) -> None:
    (file,) = written_by(path)
    file.write_bytes(file.read_bytes()[:100])


def empty(path: Path) -> None:
    (file,) = written_by(path)
    file.write_bytes(b"")


def open_to_others(path: Path) -> None:
    (file,) = written_by(path)
    file.chmod(0o666)


def written_by(path: Path) -> list[Path]:
    del path
    return list(Path(os.environ["XDG_CACHE_HOME"], "mcheck", "models").iterdir())


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("change", [edit_included, damage, cut, empty, open_to_others], ids=lambda f: f.__name__)
def test_what_has_changed_is_read_again(models: Path, change: Callable[[Path], None]) -> None:
    path = models / "ptx-9.0.cat"
    assert kept(path) is not None
    change(path)
    assert compiled_files.recall(str(path), path.read_text()) is None


@pytest.mark.usefixtures("folder")
def test_an_include_that_means_another_file_is_read_again(models: Path) -> None:
    path = models / "own.cat"
    path.write_text('"own"\ninclude "cos.cat"\nacyclic po | rf | co as order\n')
    assert kept(path) is not None
    add_nearer_include(path)
    assert compiled_files.recall(str(path), path.read_text()) is None


@pytest.mark.usefixtures("folder")
def test_another_text_and_other_code_are_read_again(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = models / "ptx-9.0.cat"
    assert kept(path) is not None
    assert compiled_files.recall(str(path), path.read_text() + "\n") is None
    monkeypatch.setattr(compiled_files, "_code", lambda: ())
    assert compiled_files.recall(str(path), path.read_text()) is None


def test_a_folder_that_cannot_be_written_is_none(folder: Path, models: Path) -> None:
    folder.parent.parent.write_text("no folder")
    assert kept(models / "ptx-9.0.cat") is None


def test_code_that_is_in_no_folder_keeps_nothing(folder: Path, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an archive, which Python imports from."""
    monkeypatch.setattr(compiled_files, "HERE", str(models / "ptx-9.0.cat"))
    compiled_files._code.cache_clear()
    assert kept(models / "ptx-9.0.cat") is None
    assert not folder.exists()


def test_a_process_reads_a_shipped_model_once(folder: Path) -> None:
    script = """
import sys
from mcheck.cat import load_model
from mcheck.cat.algebra.compiled_models import tape_of
model = load_model("ptx-9.0")
print(len(tape_of(model).code), model.digest, "mcheck.cat.parser" in sys.modules)
print(len(model.statements), "mcheck.cat.parser" in sys.modules)
"""
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder.parent.parent)}
    first, second = (
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True, env=environment
        ).stdout.split()
        for _ in range(2)
    )
    assert first[2] == "True"
    assert second[2] == "False"
    assert (second[:2], second[3:]) == (first[:2], first[3:])


def test_other_models_are_not_kept(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.cat"
    own.write_text('"own"\nacyclic po | rf | co as order\n')
    load_model(str(own))
    assert not folder.exists()
