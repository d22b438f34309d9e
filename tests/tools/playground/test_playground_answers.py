"""What the playground's worker asks, asked here: reports are those of the commands, links hold the program."""

from __future__ import annotations

import base64
import json
import re
import sys
import zipfile
import zlib
from pathlib import Path

import pytest

from mcheck.base.errors import InputError
from mcheck.report.playground_links import encode_fragment, playground_link
from mcheck.tools.cli.main import main
from mcheck.tools.playground import answers
from mcheck.tools.playground.build import EXAMPLES, PYODIDE, build

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
REFILL = re.search(r"title=refill.litmus\n(.*?)```", README, re.DOTALL)[1]


def test_the_report_is_that_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(answers.NAME).write_text(REFILL)
    assert main(["run", answers.NAME]) == 1
    said = json.loads(answers.run(REFILL, ""))
    assert said["report"] == capsys.readouterr().out
    assert (said["verdict"], said["status"], said["codes"]) == ("pass", "mismatch", ["RACE004"])
    assert [place["line"] for place in said["places"]] == [10, 12]


def test_a_sketch_with_whole_warps_is_checked_without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("numpy", "ml_dtypes", "networkx", "z3"):
        monkeypatch.setitem(sys.modules, name, None)
    verdicts = {}
    for name in EXAMPLES:
        if name.startswith("kernels/"):
            said = json.loads(answers.check((ROOT / "litmus" / f"{name}.litmus").read_text(), ""))
            verdicts[name] = (said["verdict"], said["status"], said["codes"])
    assert verdicts == {
        "kernels/P15-full-empty-ring": ("proved", "ok", []),
        "kernels/A07-warp-reduce-without-proxy-fence": ("finding", "ok", ["RACE004"]),
    }


def test_an_error_has_its_place() -> None:
    said = json.loads(answers.run("PTX x\n", ""))
    assert said["report"].startswith("error[LIT007]: the init block is missing\n  --> program.litmus:1:6")
    assert said["places"] == [{"line": 1}]
    assert not said["pictures"]
    assert json.loads(answers.check("PTX x\n", ""))["report"].startswith("error[LIT007]")


def test_a_model_may_be_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = answers.model_text("")
    assert text == answers.model_text("ptx-9.0")
    said = json.loads(answers.run(REFILL, "", own=text))
    assert (said["verdict"], said["codes"]) == ("pass", ["RACE004"])
    said = json.loads(answers.run(REFILL, "", own=text + "\nempty rf as nothing_is_read\n"))
    assert said["verdict"] == "fail"
    wrong = json.loads(answers.check(REFILL, "", own="nonsense"))
    assert "edited.cat:1:1" in wrong["report"]
    assert wrong["places"] == [], "lines of the model are not lines of the program"
    assert json.loads(answers.pictures(REFILL, "", False, own=text))["pictures"]


def test_codes_are_explained() -> None:
    said = json.loads(answers.explain("RACE004"))
    assert said["title"].startswith("RACE004 ")
    assert [heading for heading, _ in said["parts"]] == ["", "Section", "Fix", "After this finding"]
    assert all(program.startswith("PTX ") for _, program in said["programs"])


def test_pictures_show_outcomes_and_what_forbids_others() -> None:
    text = (ROOT / "litmus" / "classic" / "MP+rel+acq.litmus").read_text()
    allowed = json.loads(answers.pictures(text, "", False))["pictures"]
    assert len(allowed) == 3
    assert all(p["svg"].startswith("<svg") for p in allowed)
    (forbidden,) = json.loads(answers.pictures(text, "ptx-9.0", True))["pictures"]
    assert (forbidden["state"], forbidden["axiom"]) == ("P1:r0=1; P1:r1=0;", "Causality")


def test_a_link_holds_the_program() -> None:
    packed = encode_fragment(REFILL).removeprefix("t=")
    data = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
    assert zlib.decompress(data, -15).decode() == REFILL
    assert playground_link("../playground", "../../") == "../../../playground/index.html"
    assert playground_link("https://example.org/p/", "../", "x").startswith("https://example.org/p/index.html#t=")


@pytest.mark.daily(days=4, least=0)
def test_every_page_of_a_site_links_to_it(tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "refill.litmus").write_text(REFILL)
    site = tmp_path / "site"
    assert main(["doc", str(tmp_path / "suite"), "-o", str(site), "-j", "1", "--playground", "../playground"]) == 0
    assert 'href="../playground/index.html"' in (site / "index.html").read_text()
    (page,) = site.rglob("refill.html")
    assert f'href="../../playground/index.html#{encode_fragment(REFILL)}"' in page.read_text()


def test_the_folder_has_all_that_the_page_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    for name in PYODIDE:
        (tmp_path / name).write_text("")
    with pytest.raises(InputError, match="not the package pyodide"):
        build(str(tmp_path / "out"), str(tmp_path / "nowhere"))
    build(str(tmp_path / "out"), str(tmp_path))
    names = set(zipfile.ZipFile(tmp_path / "out" / "mcheck.zip").namelist())
    assert {"mcheck/tools/playground/answers.py", "mcheck/_data/models/ptx-9.0.cat", "mcheck/cat/stdlib.cat"} <= names
    page = (tmp_path / "out" / "index.html").read_text()
    for name in re.findall(r'(?:src|href)="([\w.]+)"', page):
        assert (tmp_path / "out" / name).is_file(), name
    assert len(json.loads((tmp_path / "out" / "playground.json").read_text())["examples"]) == len(EXAMPLES)
    with pytest.raises(InputError, match="the folder is not empty"):
        build(str(tmp_path / "out"), str(tmp_path))
