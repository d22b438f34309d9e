"""Alphabets: what the files may say, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcheck.errors import InputError
from mcheck.generate.alphabet import load, names

EDGE = '[[edge]]\nname = "Rf"\nrelation = "rf"\nends = ["WR"]\nfar = "gpu"\n'


@pytest.mark.parametrize("name", names())
def test_shipped_alphabets_load(name: str) -> None:
    alphabet = load(name)
    assert alphabet.arcs
    assert alphabet.sizes


def test_every_arc_joins_ends_of_its_edge() -> None:
    for arc in load("async").arcs:
        assert (arc.source.kind, arc.target.kind) == arc.edge.ends


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("edge = 1 = 2", "mine.toml"),
        (EDGE.replace("rf", "xx"), "rf, fr, co or po"),
        (EDGE.replace("WR", "WX"), "two of R W r w"),
        (EDGE.replace('"gpu"', '"moon"'), "distance moon"),
        (EDGE + "colour = 1\n", "no colour"),
        ('[ends]\nR = ["acq"]\n' + EDGE, "acq is not explained"),
        ('[[edge]]\nname = "x"\n', "missing or unknown"),
        (EDGE.replace("rf", "po") + 'path = ["bar", "mbar"]\n', "hands over more than once"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load(str(path))


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InputError) as raised:
        load("klassik")
    assert "classic" in (raised.value.hint or "")
