"""What goes into papers: pictures as TikZ and PDF, a suite as a table. Nothing that a test says is run by TeX."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcheck.api import outcomes
from mcheck.report.formats.latex import latex
from mcheck.tools.cli.main import main

ROOT = Path(__file__).parents[2]
LITMUS = ROOT / "litmus"
HOSTILE = r"\input{/etc/passwd} $x$ %& #_^~{}"
TEST = r"""PTX hostile_name
{ x = 0; y = 0; }
 P0@cta 0,gpu 0      | P1@cta 1,gpu 0       ;
 st.relaxed.gpu x, 1 | st.relaxed.gpu y, 1  ;
 fence.sc.gpu        | fence.sc.gpu         ;
 ld.relaxed.gpu r0, y | ld.relaxed.gpu r0, x ;
~exists (P0:r0 == 0 /\ P1:r0 == 0)
expect pass
"""


def unescaped(text: str) -> str:
    """``text`` without what is escaped and without comments."""
    return re.sub(r"\\[\\{}$&#_%]|%[^\n]*", "", text)


def test_no_character_is_left_to_tex() -> None:
    shown = latex(HOSTILE)
    assert "\\input" not in shown
    assert not set("$%&#_^~") & set(
        unescaped(shown).replace(r"\textasciicircum{}", "").replace(r"\textasciitilde{}", "")
    )
    assert latex("a--b -> c…", blanks=True) == r"a-{-}b~-\textgreater{}~c\ldots{}"
    assert latex("é\n") == "??"


def test_a_picture_is_a_tikzpicture() -> None:
    drawn = outcomes(TEST, forbidden=1).forbidden[0].picture(".tikz")
    assert isinstance(drawn, str)
    assert drawn.count(r"\begin{tikzpicture}") == drawn.count(r"\end{tikzpicture}") == 1
    bare = unescaped(drawn)
    assert bare.count("{") == bare.count("}")
    assert r"hostile\_name~under~ptx-9.0" in drawn
    assert "opacity=.5" in drawn  # what the cycle does not need
    defined = set(re.findall(r"\\definecolor\{(mc-\w+)\}", drawn))
    assert set(re.findall(r"(?:fill|draw|text)=(mc-\w+)", drawn)) <= defined


@pytest.mark.parametrize("name", ["classic/2+2W+rels", "bulk/bulk-ring-one-slot", "warps/warps-shfl-bfly"])
def test_a_picture_is_a_page_of_pdf_with_its_texts(name: str) -> None:
    pytest.importorskip("reportlab", reason="reportlab is not installed: pip install '.[dev]'")
    found = outcomes(LITMUS / f"{name}.litmus", most=1)
    drawn = found[0].picture(".pdf")
    assert isinstance(drawn, bytes)
    assert drawn.startswith(b"%PDF-")
    assert drawn == found[0].picture(".pdf")
    assert drawn.count(b"/Type /Page\n") + drawn.count(b"/Type /Page ") == 1


def test_without_reportlab_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from mcheck.base.errors import InputError

    monkeypatch.setitem(sys.modules, "reportlab.pdfgen.canvas", None)
    with pytest.raises(InputError, match="reportlab is not installed"):
        outcomes(TEST)[0].picture(".pdf")


def test_the_command_writes_both(tmp_path: Path) -> None:
    pytest.importorskip("reportlab", reason="reportlab is not installed: pip install '.[dev]'")
    test = tmp_path / "t.litmus"
    test.write_text(TEST)
    for ending in ("pdf", "tikz"):
        assert main(["outcomes", str(test), "--graph", "1", "-o", str(tmp_path / f"x.{ending}")]) == 0
    assert (tmp_path / "x.pdf").read_bytes().startswith(b"%PDF-")
    assert "tikzpicture" in (tmp_path / "x.tikz").read_text()


def test_a_suite_is_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "a_suite"
    folder.mkdir()
    (folder / "good.litmus").write_text(TEST)
    (folder / "missed.litmus").write_text(TEST.replace("hostile_name", "missed").replace("expect pass", "expect fail"))
    (folder / "racy.litmus").write_text(
        "PTX racy\n{ x = 0; }\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n st.weak x, 1 | st.weak x, 2 ;\n"
    )
    target = tmp_path / "table.tex"
    assert main(["doc", str(folder), "--paper", "-o", str(target), "--title", "50% of it"]) == 0
    assert "3 rows" in capsys.readouterr().out
    text = target.read_text()
    assert text.count(r"\begin{longtable}") == text.count(r"\end{longtable}") == 1
    assert r"\caption{50\% of it (3 tests under ptx-9.0;" in text
    assert r"\texttt{hostile\_name} & never & pass & 3 &  \\" in text
    assert r"\texttt{missed} & never & pass (expected fail) & 3 &  \\" in text
    assert re.search(r"\\texttt\{racy\} &  &  & \d & RACE001 \\\\", text)
