"""The extension for VS Code: its files are there and well formed, its grammars know the instructions of the table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcheck import __version__
from mcheck.isa.families import ptx_families

EXTENSION = Path(__file__).parents[3] / "editors" / "vscode"
PACKAGE: dict[str, Any] = json.loads((EXTENSION / "package.json").read_text())
GRAMMARS: dict[str, dict[str, Any]] = {
    g["scopeName"]: json.loads((EXTENSION / g["path"]).read_text()) for g in PACKAGE["contributes"]["grammars"]
}


def rules(node: object) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from rules(value)
    elif isinstance(node, list):
        for value in node:
            yield from rules(value)


def test_what_the_package_names_exists() -> None:
    assert PACKAGE["version"] == __version__
    for language in PACKAGE["contributes"]["languages"]:
        json.loads((EXTENSION / language["configuration"]).read_text())
    assert (EXTENSION / PACKAGE["main"]).is_file()


@pytest.mark.parametrize("scope", GRAMMARS)
def test_grammars_are_whole(scope: str) -> None:
    grammar = GRAMMARS[scope]
    assert grammar["scopeName"] == scope
    for rule in rules(grammar):
        for key in ("match", "begin", "end"):
            if key in rule:
                re.compile(rule[key])
        if "include" in rule:
            other, _, name = rule["include"].partition("#")
            assert name in GRAMMARS[other or scope]["repository"]


def test_every_instruction_has_a_colour() -> None:
    code = GRAMMARS["source.ptx"]["repository"]["code"]["patterns"]
    patterns = [re.compile(rule["match"]) for rule in code if "instruction" in json.dumps(rule)]
    for family in ptx_families():
        bare = not any(slot for variant in family.variants for slot in variant.slots if not slot.optional)
        text = f"{family.name} r0;" if bare else f"{family.name}.x r0;"
        assert any(p.search(text) for p in patterns) or bare, family.name
