"""Alphabets: what the files may say, and what is wrong with them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcheck.base.errors import InputError
from mcheck.tools.generate.alphabet import load, names

COPY = """[[copy]]
name = "Store"
code = "cp.async.bulk.global.shared::cta.bulk_group [{dst}], [{src}], 16"
source = "shared"
target = "global"
signal = "bulk"
"""
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
        ("", "1:1: the alphabet has no edges"),
        (EDGE.replace("edge", "edges"), "1:3: an alphabet has no key edges"),
        ("edge = 3", "1:8: edge is not a list of tables"),
        (EDGE.replace("rf", "xx"), "3:12: the relation of an edge must be rf, fr, co or po, not xx"),
        (EDGE + EDGE.replace("WR", "WX"), "9:8: the ends WX of Rf are not two of R W r w"),
        (EDGE.replace('["WR"]', "1"), "4:8: ends is not a list of texts"),
        (EDGE.replace('"gpu"', '"moon"  # far'), "5:7: invalid distance moon of Rf"),
        (EDGE + "colour = 1\n", r"6:10: \[\[edge\]\] has no key colour"),
        (EDGE + 'moved = "so"\n', "6:9: moved must be true or false"),
        ('[ends]\nR = ["acq"]\n' + EDGE, "2:5: the annotation acq is not defined"),
        ('[ends]\nX = ["rlx"]\n' + EDGE, r"2:5: \[\[ends\]\] has no key X"),
        ('[[edge]]\nname = "x"\n', r"1:3: \[\[edge\]\] needs relation, ends"),
        (EDGE + '[[copy]]\nname = "C"\n', r"6:3: \[\[copy\]\] needs code, source, target, signal"),
        ("sizes = [1000000000]\n" + EDGE, "1:9: a cycle must have 2 to 32 edges"),
        (EDGE.replace("Rf", "../../x"), "2:8: '../../x' is not a name"),
        (EDGE + COPY.replace("{dst}", "{dst:>1500000000}"), "8:8: unknown placeholder {dst:>1500000000}"),
        (EDGE + COPY.replace("{dst}", "{dst.__class__}"), "8:8: unknown placeholder {dst.__class__}"),
        (EDGE + COPY.replace("{dst}", "{0}"), r"8:8: unknown placeholder \{0\}"),
        (EDGE + COPY.replace('"bulk"', '"flag"'), "11:10: invalid signal 'flag' of a copy"),
        (EDGE.replace('"gpu"', "[" * 900 + "]" * 900), ""),
        (EDGE.replace('"gpu"', f"{{{'.'.join('a' * 5000)} = 1}}"), "5:7: invalid distance of Rf"),
        (EDGE + 'path = ["issue"]\n', "4:8: Rf issues the copy at its target, but the target of WR is not a copy"),
        (EDGE + 'path = ["wait"]\n', "4:8: Rf waits for the copy at its source, but the source of WR is not a copy"),
        (EDGE.replace("rf", "po") + 'path = ["bar", "mbar"]\n', "6:8: Rf has more than one handover"),
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


@pytest.mark.daily(days=4, least=0)
def test_many_of_everything(tmp_path: Path) -> None:
    """A small file with a great many pairs of ends."""
    notes = [f"n{k}" for k in range(90)]
    head = "[annotations]\n" + "".join(f'{note} = "relaxed.gpu"\n' for note in notes)
    head += f"[ends]\nR = {notes}\nW = {notes}\n"
    path = tmp_path / "mine.toml"
    path.write_text(head + "".join(EDGE.replace("Rf", f"Rf{k}") for k in range(30)))
    with pytest.raises(InputError, match="more than 100,000 pairs of ends"):
        load(str(path))
    path.write_text("[annotations]\n" + "".join(f'n{k} = ""\n' for k in range(2000)) + 'rlx = ""\n' + EDGE)
    with pytest.raises(InputError, match="more than 100 of annotations"):
        load(str(path))
    path.write_text("#" * (1 << 20))
    with pytest.raises(InputError, match="has more than"):
        load(str(path))
