"""What is public of mcheck: listed, documented, and as its page says it is used."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import mcheck.api
from mcheck.api import check, executions, load, outcomes, run, suite
from mcheck.base.errors import InputError, Unsupported

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
HOSTILE = '<script>alert("x")</script>'


def fenced(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def program(**more: str) -> str:
    """A race on x whose text is what the page has, with replacements."""
    (text,) = fenced("litmus")
    for old, new in more.items():
        text = text.replace(old, new)
    return text


def test_the_page_says_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed: pip install '.[dev]'")
    monkeypatch.chdir(tmp_path)
    Path("MP.litmus").write_text(program(), encoding="utf-8")
    examples = "\n".join(fenced("pycon"))
    case = doctest.DocTestParser().get_doctest(examples, {}, "python.md", "python.md", 0)
    assert len(case.examples) > 20
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    said: list[str] = []
    runner.run(case, out=said.append)
    assert runner.failures == 0, "".join(said)
    assert Path("stale.svg").read_text(encoding="utf-8").startswith("<svg")


def test_the_reference_has_all_that_is_public_and_nothing_else() -> None:
    listed = re.findall(r"^::: mcheck\.api\.(\w+)$", REFERENCE, re.MULTILINE)
    assert sorted(listed) == sorted(mcheck.api.__all__)
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("name", sorted(set(mcheck.api.__all__) - {"State", "executions"}))
def test_what_is_public_says_what_it_takes_and_has(name: str) -> None:
    thing = getattr(mcheck.api, name)
    told = inspect.getdoc(thing)
    assert told
    if inspect.isclass(thing):
        fields = [field for field in thing.__dataclass_fields__ if not field.startswith("_")]
        assert re.findall(r"^ {4}(\w+): ", told.partition("Attributes:")[2], re.MULTILINE) == fields
    elif name != "load":
        arguments = told.partition("Args:")[2].partition("Raises:")[0]
        assert re.findall(r"^ {4}(\w+): ", arguments, re.MULTILINE) == list(inspect.signature(thing).parameters)


def test_importing_the_package_brings_nothing_heavy() -> None:
    import subprocess
    import sys

    code = "import sys, mcheck.api; print(*{'numpy', 'networkx', 'z3', 'pandas', 'rich', 'jinja2'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == []


def test_notebooks_get_no_markup_from_a_test() -> None:
    text = program(MP=f'MP\n"{HOSTILE}"')
    shown = [
        run(text)._repr_html_(),
        check(text.replace("st.release", "st.relaxed"))._repr_html_(),
        outcomes(text, forbidden=1)._repr_html_(),
        outcomes(text, forbidden=1).forbidden[0]._repr_html_(),
    ]
    for html in shown:
        assert "<script" not in html
        assert html.count("<table") == html.count("</table>")
    assert "RACE001" in shown[1]
    assert "forbidden by Causality" in shown[2]
    assert "<svg" in shown[3]


def test_markup_in_values_is_escaped() -> None:
    from mcheck.api.html import paragraph, table

    assert table([{HOSTILE: HOSTILE}]).count("&lt;script&gt;") == 2
    assert "<script" not in paragraph(HOSTILE, HOSTILE) + table([{HOSTILE: HOSTILE}])
    assert table([]) == table([{}]) == paragraph() == ""


def test_a_suite_goes_on_after_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "good.litmus").write_text(program(), encoding="utf-8")
    (tmp_path / "bad.litmus").write_text("PTX bad\n{", encoding="utf-8")
    results = suite(tmp_path)
    assert {Path(r.path).name: r.verdict for r in results} == {"good.litmus": "fail", "bad.litmus": "error"}
    assert not results.ok
    assert "1 as expected" in results._repr_html_()
    assert [r.name for r in results[:1]] == [results[0].name]


def test_a_loaded_program_and_its_text_have_one_answer() -> None:
    text = program()
    read = load(text)
    assert run(read).states == run(text).states
    assert check(read).verdict == check(text).verdict
    assert [o.state for o in outcomes(read)] == [o.state for o in outcomes(text)]
    assert [g.graph["state"] for g in executions(read)] == [g.graph["state"] for g in executions(text)]


def test_a_state_without_a_picture_says_so() -> None:
    found = outcomes(program(), most=0)
    assert found[0]._repr_svg_() is None
    with pytest.raises(InputError, match="this state has no drawn execution"):
        found[0].picture()


def test_frames_say_what_is_missing_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pandas is not installed") as caught:
        run(program()).frame()
    assert caught.value.hint == "pip install '.[pandas]' in a checkout of mcheck"


TILES = """PTX tiles
const N = any;
{ .shared .u32 x; }
P@cta 0 { for k in 0..N { st.shared.u32 [x], k; } }
"""


def test_any_number_of_rounds_is_checked() -> None:
    assert check(TILES).verdict == "proved"
    with pytest.raises(Unsupported, match="parametric programs"):
        run(TILES)


@pytest.mark.parametrize("option", [{"engine": "foo"}, {"profile": "foo"}, {"timeout": -1.0}, {"unroll": -1}])
def test_an_option_that_no_command_takes_is_an_error(option: dict[str, Any]) -> None:
    (name,) = option
    for function in (run, check):
        with pytest.raises(InputError, match=f"invalid {name}") as caught:
            function(TILES, **option)
        assert caught.value.expected
