"""Alphabets: what the files may say, and what is wrong with them."""

from __future__ import annotations

import re
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
        ("edge = 1 = 2", "1:10: "),
        ("", "1:1: an alphabet without edges"),
        (EDGE.replace("edge", "edges"), "1:3: an alphabet has no edges"),
        ("edge = 3", "1:8: edge is no list of tables"),
        (EDGE.replace("rf", "xx"), "3:12: an edge is rf, fr, co or po, not xx"),
        (EDGE + EDGE.replace("WR", "WX"), "9:8: the ends WX of Rf are not two of R W r w"),
        (EDGE.replace('["WR"]', "1"), "4:8: ends is no list of texts"),
        (EDGE.replace('"gpu"', '"moon"  # far'), "5:7: the distance moon of Rf"),
        (EDGE + "colour = 1\n", r"6:10: \[\[edge\]\] has no colour"),
        (EDGE + 'moved = "so"\n', "6:9: moved is neither"),
        ('[ends]\nR = ["acq"]\n' + EDGE, "2:5: the annotation acq is not explained"),
        ('[ends]\nX = ["rlx"]\n' + EDGE, r"2:5: \[\[ends\]\] has no X"),
        ('[[edge]]\nname = "x"\n', r"1:3: \[\[edge\]\] needs relation, ends"),
        (EDGE + '[[copy]]\nname = "C"\n', r"6:3: \[\[copy\]\] needs code, source, target, signal"),
        (EDGE.replace("rf", "po") + 'path = ["bar", "mbar"]\n', "6:8: Rf hands over more than once"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        load(str(path))
    at = raised.value.span
    assert at is not None
    assert at.path == str(path)
    assert re.match(message, f"{at.line}:{at.column}: {raised.value.message}")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InputError) as raised:
        load("klassik")
    assert "classic" in (raised.value.hint or "")
