"""What a site says of each file at a glance: modules and their launches, mistakes, names, topics, what was found."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mcheck.frontend.litmus import parse
from mcheck.report.site.build import to_html
from mcheck.report.site.topics import find_module_topics, find_topics
from mcheck.tools.cli.main import main

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "tests" / "simt" / "hand_over.ptx"
LAUNCH = {"grid": 1, "params": {"rows": 1, "out": {"buffer": 256}}}
RACE = """PTX flag
{{ x = 0; f = 0; }}
 P0@cta 0,gpu 0       | P1@cta 1,gpu 0       ;
 st.weak x, 1         | ld.relaxed.gpu r0, f ;
 st.{sem}.gpu f, 1    | ld.weak r1, x        ;
exists (P1:r0 == 1 /\\ P1:r1 == 1)
{expect}
"""
ALONE = """PTX alone
{ x = 0; }
 P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
 st.weak x, 1   | ld.weak r1, x  ;
expect race
"""
LATE = """PTX late
const N = any;
{ .global .align 16 .b8 g[32]; }
P0@cta 0 {
  for k in 0..N {
    ld.global.u32 r0, [g + k / 2 * 16];
  }
}
"""
WRONG = "PTX broken\n{ x = 0; }\n P0@cta 0,gpu 0 ;\n st.wek x, 1 ;\n ld.waek r0, x ;\nexists (x == 1)\n"
RING = """PTX ring
"for one cluster"
{ .shared .align 16 .b8 s[16]; .shared .b64 bar; .global .align 16 .b8 g[16]; }
P0@cta 0 { // a loop for every stage of the cluster
  mbarrier.init.shared::cta.b64 [bar], 1;
  fence.acq_rel.cluster;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [bar];
  cp.async.bulk.wait_group 0;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Modules with and without a launch, and tests that differ in what is found in them."""
    made = tmp_path_factory.mktemp("files")
    text = MODULE.read_text(encoding="utf-8")
    raced = "".join(line for line in text.splitlines(keepends=True) if "fence.proxy.async" not in line)
    assert raced != text
    for name, module in (("raced", raced), ("fenced", text), ("bare", text)):
        (made / f"{name}.ptx").write_text(module, encoding="utf-8")
        if name != "bare":
            (made / f"{name}.json").write_text(json.dumps(LAUNCH))
    (made / "one.litmus").write_text(RACE.format(sem="relaxed", expect="expect race"))
    (made / "two.litmus").write_text(RACE.format(sem="relaxed", expect=""))
    (made / "alone.litmus").write_text(ALONE)
    (made / "wrong.litmus").write_text(WRONG)
    return made


@pytest.fixture(scope="module")
def site(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "site"
    assert main(["doc", str(folder), "-o", str(out), "-j", "1", "--playground", "https://try.example/"]) == 2
    return out


def page(site: Path, name: str) -> str:
    (found,) = site.rglob(f"{name}.html")
    return found.read_text(encoding="utf-8")


def row(site: Path, name: str) -> str:
    rows = re.findall(r"<tr role=\"row\" data-suite.*?</tr>", page(site, "index"), re.DOTALL)
    (found,) = [r for r in rows if f"/{name}.html" in r]
    return found


@pytest.mark.daily(days=3, least=0)
def test_a_module_has_a_page_with_the_lines_of_its_findings(site: Path, folder: Path) -> None:
    text = page(site, "raced.ptx")
    line = (folder / "raced.ptx").read_text().splitlines().index("\tst.shared.u32 \t[%r4], %r2;") + 1
    assert "RACE004" in text
    assert f'<a href="#L{line}" class="source-line">' in text
    assert f'id="L{line}"' in text
    assert "from tile.cuh:12:5, inlined in hand_over.cu:5:3" in text
    assert "the launch: entry hand_over, grid 1, 1, 1, block 64, 1, 1" in text
    assert "&#34;grid&#34;: 1" in text, "the launch as it lies beside the module"
    assert 'id="picture-1"' in text
    assert "try.example" not in text, "the playground has no modules"
    assert '"verdict finding' in row(site, "raced.ptx")
    assert '"verdict proved"' in row(site, "fenced.ptx")
    assert ">none</span>" in row(site, "fenced.ptx")
    assert "None: no race" in page(site, "fenced.ptx")


@pytest.mark.daily(days=3, least=0)
def test_a_module_without_a_launch_is_named(site: Path, folder: Path) -> None:
    index = page(site, "index")
    assert "Modules without a launch" in index
    assert str(folder / "bare.ptx") in index
    assert not list(site.rglob("bare.ptx.html"))


def test_a_module_that_cannot_be_launched_has_a_page_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "m.ptx").write_text(MODULE.read_text())
    (tmp_path / "m.json").write_text('{"grid": "many"}')
    assert main(["doc", str(tmp_path), "-o", str(tmp_path / "site"), "-j", "1"]) == 2
    text = page(tmp_path / "site", "m.ptx")
    assert "This file could not be read" in text
    assert "m.json:1:" in text


def test_an_answer_that_is_not_whole_does_not_say_that_nothing_is_wrong(tmp_path: Path) -> None:
    by_data = MODULE.read_text().replace("ld.param.u32 \t%r1, [rows]", "ld.global.u32 %r1, [%rd1+256]")
    (tmp_path / "m.ptx").write_text(by_data)
    (tmp_path / "m.json").write_text('{"grid": 1, "params": {"out": {"buffer": 512}}}')
    main(["doc", str(tmp_path), "-o", str(tmp_path / "site"), "-j", "1"])
    assert '"verdict bounded"' in page(tmp_path / "site", "m.ptx")
    assert "no race" not in page(tmp_path / "site", "m.ptx")
    assert "none found" in row(tmp_path / "site", "m.ptx")


@pytest.mark.daily(days=3, least=0)
def test_modules_in_markdown_and_in_a_table(folder: Path, tmp_path: Path) -> None:
    for name in ("raced", "fenced"):
        for ending in (".ptx", ".json"):
            (tmp_path / f"{name}{ending}").write_text((folder / f"{name}{ending}").read_text())
    out = tmp_path / "pages"
    assert main(["doc", str(tmp_path), "-o", str(out), "--format", "md", "-j", "1"]) == 0
    assert re.search(r"raced\.ptx.*\| finding \| RACE004 \|", (out / "README.md").read_text())
    (told,) = out.rglob("raced.ptx.md")
    assert "from tile.cuh:12:5" in told.read_text()
    table = tmp_path / "table.tex"
    assert main(["doc", str(tmp_path), "--paper", "-o", str(table), "-j", "1"]) == 0
    assert r"\texttt{raced.ptx} &  & finding & -- & RACE004 \\" in table.read_text()


@pytest.mark.daily(days=4, least=0)
def test_a_sketch_with_any_number_of_rounds_has_the_answer_of_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("late", LATE), ("whole", LATE.replace("k / 2 * 16", "0").replace("late", "whole"))):
        (tmp_path / f"{name}.litmus").write_text(text)
    assert main(["check", str(tmp_path / "late.litmus"), str(tmp_path / "whole.litmus")]) == 1
    told = capsys.readouterr().out
    smallest = "found with N = 5, the smallest such value"
    proof = "for every number of rounds from 0 on: from N = "
    assert smallest in told
    assert proof in told
    out = tmp_path / "site"
    assert main(["doc", str(tmp_path), "-o", str(out), "-j", "1"]) == 0
    assert smallest in page(out, "late")
    assert "UB103" in page(out, "late")
    assert 'id="picture-1"' in page(out, "late")
    assert '"verdict finding' in row(out, "late")
    assert proof in page(out, "whole")
    assert "None: no race" in page(out, "whole")
    assert "The beginning of a run with N = 1" in page(out, "whole")
    assert '"verdict proved"' in row(out, "whole")
    assert main(["doc", str(tmp_path), "-o", str(tmp_path / "md"), "--format", "md", "-j", "1"]) == 0
    assert re.search(r"late.*\| finding \| UB103 \|", (tmp_path / "md" / "README.md").read_text())
    table = tmp_path / "table.tex"
    assert main(["doc", str(tmp_path), "--paper", "-o", str(table), "-j", "1"]) == 0
    assert r"\texttt{late} &  & finding & -- & UB103 \\" in table.read_text()
    assert r"\texttt{whole} &  & proved & -- &  \\" in table.read_text()


def test_what_a_message_says_in_backticks_is_code() -> None:
    assert str(to_html("ask `a < b` and <i>")) == "ask <code>a &lt; b</code> and &lt;i&gt;"


@pytest.mark.daily(days=3, least=0)
def test_a_page_that_is_kept_rests_on_the_launch(folder: Path, tmp_path: Path) -> None:
    module, launch, cache = tmp_path / "m.ptx", tmp_path / "m.json", str(tmp_path / "kept")
    module.write_text((folder / "raced.ptx").read_text())
    said = []
    for rows in (1, 1, 0):
        launch.write_text(json.dumps({**LAUNCH, "params": {"rows": rows, "out": {"buffer": 256}}}))
        out = tmp_path / f"site{len(said)}"
        main(["doc", str(module), "-o", str(out), "-j", "1", "--cache", cache])
        said.append(page(out, "m.ptx"))
    assert said[0] == said[1]
    assert "RACE004" in said[0]
    assert "RACE004" not in said[2], "with no rows nothing is copied"


def test_every_mistake_of_a_file_is_shown(site: Path) -> None:
    text = page(site, "wrong")
    assert "line 4, column 5" in text
    assert "line 5, column 5" in text
    assert text.count("◀ here") == 2
    assert "(and 1 more)" in row(site, "wrong")


def test_tests_of_one_name_can_be_told_apart(site: Path, folder: Path) -> None:
    for name in ("one", "two"):
        path = str(folder / f"{name}.litmus")
        assert ">flag</a>" in row(site, name)
        assert path in row(site, name)
        assert f'<p class="faint path">{path}</p>' in page(site, name)
    assert str(folder / "alone.litmus") not in row(site, "alone")


def test_what_was_found_stands_out_from_what_is_clean(site: Path) -> None:
    for name in ("one", "two"):
        assert '<span class="verdict pass marred">pass</span>' in row(site, name)
        assert '<code class="code error">RACE001</code>' in row(site, name)
    assert "as expected" in row(site, "one")
    assert "as expected" not in row(site, "two"), "nothing is expected of it"
    assert '<span class="verdict finding' in row(site, "alone"), "it asks for no final state"
    assert "as expected" in row(site, "alone")


def test_topics_are_what_a_test_does() -> None:
    assert find_topics(parse(RING, "ring.litmus"), RING) == ("bulk copies", "mbarriers", "memory fences")
    two = RING.replace("P0@cta 0 {", "P1@cluster 0, cta 1 { }\nP0@cluster 0, cta 0 {")
    assert "clusters" in find_topics(parse(two, "ring.litmus"), two)
    back = "PTX back\n{ x = 0; }\n P0@cta 0,gpu 0 ;\n L0: ;\n ld.relaxed.gpu r0, x ;\n bra L0 ;\n"
    assert find_topics(parse(back, "back.litmus"), back) == ("loops",)
    ahead = "PTX ahead\n{ x = 0; }\n P0@cta 0,gpu 0 ;\n bra L0 ;\n ld.relaxed.gpu r0, x ;\n L0: ;\n"
    assert find_topics(parse(ahead, "ahead.litmus"), ahead) == ()
    rounds = "$L__BB0_1:\n\tbar.sync \t0;\n\t@%p1 bra \t$L__BB0_1;\n\tret;\n"
    assert find_module_topics(rounds) == ("barriers", "loops")
    assert find_module_topics(rounds.replace("@%p1 bra", "// bra")) == ("barriers",)
