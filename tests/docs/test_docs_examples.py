"""Every example of docs/ is run: tests answer what they expect, commands print what is shown.

``pytest --promote`` writes what the commands print into the pages.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mcheck.frontend.litmus import load
from mcheck.tools.cli.main import main
from tests.shown_commands import printed

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
OWN_TESTS = {"litmus-format.md"}  # tests/frontend/litmus looks after it
PAGES = sorted(p.name for p in DOCS.glob("*.md") if p.name not in OWN_TESTS)
BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
SKETCH = 8
"""Threads from which on an example is a sketch, which only ``mcheck check`` runs, as one with ``any`` is."""


def blocks(page: str, kind: str) -> list[str]:
    return [b["body"] for b in BLOCK.finditer((DOCS / page).read_text(encoding="utf-8")) if b["kind"] == kind]


def write_examples(page: str, folder: Path) -> list[Path]:
    """Writes tests, models and modules under their own names; the tests."""
    out = []
    for body in blocks(page, "litmus"):
        name = re.match(r"PTX (\S+)\n", body)
        assert name is not None, body
        path = folder / f"{name[1]}.litmus"
        assert not path.exists(), f"{page}: two examples are called {name[1]}"
        path.write_text(body)
        out.append(path)
    for body in blocks(page, "cat"):
        title = re.match(r'"(\S+)"\n', body)
        assert title is not None, body
        (folder / f"{title[1]}.cat").write_text(body)
    for body in blocks(page, "ptx"):
        comment = re.match(r"// (\S+\.ptx)\n", body)
        assert comment is not None, body
        (folder / comment[1]).write_text(body)
    return out


@pytest.mark.parametrize("page", PAGES)
def test_examples_answer_as_they_say(page: str, command_folder: Path) -> None:
    for path in write_examples(page, command_folder):
        program = load(str(path), every=True)
        expected = program.expectation.verdict or program.expectation.kinds
        if expected and len(program.threads) < SKETCH and program.parameter is None:
            assert main(["run", str(path)]) == 0, f"{page}: {path.name}"
        elif expected:
            assert main(["check", str(path)]) == 0, f"{page}: {path.name}"


DEAR = {"documents.md", "fences-in-practice.md", "fences.md", "kernel-sketches.md"}
"""Pages whose commands take longer than those of all others."""


def turn(page: str) -> object:
    """A page, with what says when it runs."""
    return pytest.param(page, marks=pytest.mark.daily(days=4, least=0) if page in DEAR else ())


@pytest.mark.parametrize("page", [turn(page) for page in PAGES if blocks(page, "console")])
@pytest.mark.skipif(shutil.which("sh") is None, reason="no shell to run the commands with")
def test_commands_print_what_is_shown(
    page: str, command_folder: Path, promote: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_examples(page, command_folder)
    shown = blocks(page, "console")
    happened = []
    for body in shown:
        commands = [line[2:] for line in body.splitlines() if line.startswith("$ ")]
        assert commands, f"{page}: a console block without a command"
        happened.append(
            "".join(f"$ {command}\n{printed(command, command_folder, monkeypatch)}" for command in commands)
        )
    happened = [text if text.endswith("\n") else f"{text}\n" for text in happened]
    if promote:
        text = (DOCS / page).read_text(encoding="utf-8")
        for old, new in zip(shown, happened, strict=True):
            text = text.replace(f"```console\n{old}```", f"```console\n{new}```", 1)
        (DOCS / page).write_text(text, encoding="utf-8")
        return
    assert shown == happened


def test_every_open_question_names_tests_that_exist() -> None:
    text = (DOCS / "open-questions.md").read_text(encoding="utf-8")
    tests = {p.stem for p in (ROOT / "litmus").rglob("*.litmus")}
    rows = re.findall(r"^\| \*\*(Q\d+)\*\*.*\| ?([^|]*?) ?\|$", text, re.MULTILINE)
    assert [q for q, _ in rows] == [f"Q{k}" for k in range(1, 42)]
    for question, named in rows:
        for name in re.findall(r"`([^`]+)`", named):
            assert name in tests, f"{question}: {name}"


def test_disputed_readings_are_as_grave_as_the_page_says() -> None:
    """The severities of the table are those of the catalogue, and every question of it stands on the other page."""
    from mcheck.findings import catalogue

    text = (DOCS / "disputed.md").read_text(encoding="utf-8")
    questions = (DOCS / "open-questions.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:7]] for line in text.splitlines() if line.startswith("| Q")]
    assert {row[0] for row in rows} == {f"Q{k}" for k in (1, 5, 7, 15, 16, 18, 21, 22, 23, 24, 25, 39, 41)}
    for question, _, code, *severities in rows:
        assert f"**{question}**" in questions
        wanted = ["", "", ""] if code == "none" else [catalogue.severity(code, p) for p in catalogue.PROFILES]
        assert severities == wanted


def test_every_rule_that_a_model_cites_is_explained() -> None:
    """A question that the default model's comments name stands on the page."""
    cited = set(re.findall(r"\bQ\d+\b", (ROOT / "models" / "ptx-9.0.cat").read_text(encoding="utf-8")))
    text = (DOCS / "open-questions.md").read_text(encoding="utf-8")
    assert all(f"**{q}**" in text for q in cited)


def test_what_the_pages_name_exists() -> None:
    for page in DOCS.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for path in re.findall(r"`((?:mcheck|docs|models|tests|litmus)/[\w./-]+)`", text):
            assert (ROOT / path).exists(), f"{page.name}: {path}"


@pytest.mark.slow
def test_mkdocs_builds_the_site(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install '.[docs]'")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path / "site")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "true"},
    )
    assert done.returncode == 0, done.stderr
    for page in DOCS.glob("*.md"):
        assert (tmp_path / "site" / ("index.html" if page.stem == "index" else f"{page.stem}/index.html")).is_file()
