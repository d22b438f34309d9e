"""What the project says of itself: metadata, citation, issue forms. `benchmarks/installed.py` tries the wheel."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import mcheck

ROOT = Path(__file__).parents[2]
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_citation_is_that_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == mcheck.__version__
    assert {"cff-version", "message", "title", "authors"} <= set(citation)


def test_each_python_from_the_lowest_on_has_its_classifier() -> None:
    project = PROJECT["project"]
    lowest = int(project["requires-python"].removeprefix(">=3."))
    named = [
        c.rpartition(" :: ")[2] for c in project["classifiers"] if c.startswith("Programming Language :: Python :: 3.")
    ]
    assert named == [f"3.{lowest + k}" for k in range(len(named))]
    assert "Typing :: Typed" in project["classifiers"]
    assert (ROOT / "mcheck" / "py.typed").is_file()


def test_every_dependency_has_a_lower_bound() -> None:
    """`python -m benchmarks.installed --lowest` installs exactly those."""
    for bound in PROJECT["project"]["dependencies"]:
        assert bound.count(">=") == 1, bound
        assert not set("<!~,;[") & set(bound), bound


def test_the_source_distribution_names_files_that_exist() -> None:
    for name in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]:
        assert (ROOT / name.lstrip("/")).exists(), name


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_asks_for_what_is_needed(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(form)
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids))
    for field in form["body"]:
        assert field["type"] in {"textarea", "input", "dropdown", "checkboxes"}
        assert field["attributes"]["label"]
        assert field["validations"]["required"]
