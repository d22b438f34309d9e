"""``mcheck doc``: whole sites, every link of them, what the pages say, and what happens to bad input."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from mcheck.checking.run.collect import collect_tests
from mcheck.report.picture.shapes import DRAWN, FILLS, LIGHT
from mcheck.report.picture.svg import DARK
from mcheck.report.site.build import plan
from mcheck.tools.cli.main import main

ROOT = Path(__file__).parents[2]
LITMUS = ROOT / "litmus"
BROKEN = "PTX broken\n{ x=0; }\n P0@cta 0,gpu 0 ;\n st.wek x, 1 ;\nexists (x == 1)\n"
ODD = """PTX odd
"<script>alert(1)</script> & | `x` *y*"
{ x = 0; }
 P0@cta 0,gpu 0 ;
 st.weak x, 1 ;
exists (x == 1)
expect pass
"""
VOID = {"meta", "link", "input", "br", "rect", "path", "polygon", "img", "hr"}


@dataclass
class Seen(HTMLParser):
    """What a page links to, what can be linked to, and whether its tags match."""

    links: list[str] = field(default_factory=list)
    anchors: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    headings: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    tables: list[int] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    labelled: list[str] = field(default_factory=list)
    away: list[str] = field(default_factory=list)
    lang: str = ""
    first_link: str = ""
    pictures: list[tuple[list[str], list[str]]] = field(default_factory=list)
    text_of: dict[str, str] = field(default_factory=dict)
    inside: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if "id" in found:
            self.anchors.append(found["id"] or "")
        for name in ("href", "src"):
            if (link := found.get(name)) and tag == "a" and link.startswith("https:"):
                self.away.append(link)
            elif link:
                self.links.append(link)
        self._reachable(tag, found)
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "table":
            self.tables.append(0)
        if tag == "th":
            self.tables[-1] += 1
            if "scope" not in found:
                self.wrong.append("a header cell without scope")
        if tag == "svg" and found.get("role") != "img":
            self.wrong.append("a picture without role")
        if tag == "img" and not found.get("alt"):
            self.wrong.append("an image without text")
        if tag not in VOID:
            self.open.append(tag)
            self.inside.append(found.get("id") or "")

    def _reachable(self, tag: str, found: dict[str, str | None]) -> None:
        """What a keyboard and a screen reader need."""
        if tag == "html":
            self.lang = found.get("lang") or ""
        if tag == "a" and not self.first_link:
            self.first_link = found.get("href") or ""
        if tag in ("input", "select"):
            self.fields.append(found.get("id") or "")
        if tag == "label":
            self.labelled.append(found.get("for") or "")
        if found.get("role") == "region" and not (found.get("aria-label") or found.get("aria-labelledby")):
            self.wrong.append("a region without a name")
        if (found.get("tabindex") or "0") != "0":
            self.wrong.append("a tabindex that changes the order")
        if tag in ("pre", "div") and found.get("class") == "wide" and found.get("tabindex") != "0":
            self.wrong.append("a part that scrolls and no key reaches")
        if tag == "svg":
            self.pictures.append(((found.get("aria-labelledby") or "").split(), []))
        if "aria-labelledby" in found:
            self.labelled += (found["aria-labelledby"] or "").split()

    def handle_data(self, data: str) -> None:
        for name in filter(None, self.inside):
            self.text_of[name] = self.text_of.get(name, "") + data
        if self.open and self.open[-1] == "text":
            self.pictures[-1][1].append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        self.inside.pop()
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes nothing")


def seen(path: Path) -> Seen:
    parser = Seen()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


def check_site(folder: Path) -> int:
    """Follows every link of every page; the number of pages."""
    pages = {p: seen(p) for p in folder.rglob("*.html")}
    for page, found in pages.items():
        assert not found.wrong, f"{page}: {found.wrong[:3]}"
        assert not found.open, f"{page}: {found.open}"
        assert len(found.anchors) == len(set(found.anchors)), f"{page}: an identifier is there twice"
        assert found.headings[0] == 1, page
        assert found.headings.count(1) == 1, page
        assert all(b <= a + 1 for a, b in zip(found.headings, found.headings[1:], strict=False)), (
            f"{page}: {found.headings}"
        )
        assert all(found.tables), f"{page}: a table without headers"
        assert found.lang == "en", page
        assert found.first_link == "#content", f"{page}: the first link skips to the content"
        assert set(found.fields) <= set(found.labelled), f"{page}: a field without a label"
        assert set(found.labelled) <= set(found.anchors), f"{page}: a label of nothing"
        for names, drawn in found.pictures:
            told = " ".join(found.text_of[name] for name in names)
            boxes = [re.match(r"([a-z]\d*|\d+): (.*)", text) for text in drawn]
            for box in filter(None, boxes):
                assert box[1] in told.split() or f"{box[1]}," in told, f"{page}: {box[0]} is drawn and not told"
                assert "\N{HORIZONTAL ELLIPSIS}" in box[2] or box[2] in told, f"{page}: {box[0]} is drawn and not told"
        for link in found.links:
            parts = urlsplit(link)
            if parts.scheme == "data":
                continue
            assert not parts.scheme, f"{page}: {link} leaves the site"
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert target.is_file(), f"{page}: {link} leads nowhere"
            if parts.fragment:
                assert unquote(parts.fragment) in pages[target].anchors, f"{page}: {link} has no such anchor"
    reached, todo = set(), [folder / "index.html"]
    while todo:
        page = todo.pop()
        if page in reached:
            continue
        reached.add(page)
        todo += [(page.parent / unquote(urlsplit(x).path)).resolve() for x in pages[page].links if ".html" in x]
    assert {p.resolve() for p in pages} == {p.resolve() for p in reached}, "a page that nothing links to"
    return len(pages)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few tests of each kind, one that cannot be read, and names that need escaping."""
    folder = tmp_path_factory.mktemp("tests")
    for test in (
        "classic/MP+rel+acq",
        "classic/LB+datas",
        "bulk/bulk-ring-one-slot-no-fence",
        "undefined/undefined-cp-async-one-group-one-place",
        "liveness/Lock+two",
        "kernels/B01-refill-overtakes-generic-reads",
    ):
        source = LITMUS / f"{test}.litmus"
        if source.exists():
            target = folder / f"{test}.litmus"
            target.parent.mkdir(exist_ok=True)
            target.write_text(source.read_text())
    (folder / "odd names").mkdir()
    (folder / "odd names" / 'br <oken> & "quoted" #1.litmus').write_text(BROKEN)
    (folder / "odd names" / "a%20b.litmus").write_text(ODD)
    (folder / "odd names" / "a 20b.litmus").write_text(ODD)
    (folder / "odd names" / "A_20B.litmus").write_text(ODD)
    return folder


@pytest.fixture(scope="module")
def site(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out") / "site"
    assert main(["doc", str(suite), "-o", str(folder), "-j", "2"]) == 2, "one test cannot be read"
    return folder


@pytest.mark.daily(one_of="heavy")
def test_every_link_leads_somewhere(site: Path, suite: Path) -> None:
    assert check_site(site) == 1 + len(list(suite.rglob("*.litmus")))


@pytest.mark.daily(days=3, least=0)
def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            text = re.sub(r"""<a href="https://[^"]*" rel="noopener">""", "", text)  # a link is not followed by itself
            assert not re.search(r"""(href|src|action)=["']?(https?:|//)|url\(|@import|fetch\(|XMLHttp""", text), path


def test_a_page_says_all_about_its_test(site: Path) -> None:
    text = (site / "classic" / "MP+rel+acq.html").read_text()
    for heading in (
        "Program",
        "Question",
        "Verdict under each model",
        "Outcomes under ptx-9.0",
        "Findings",
        "Executions",
    ):
        assert f">{heading}</h2>" in text
    for model in ("ptx-6.0", "ptx-7.5", "ptx-9.0", "ptx-9.3", "sc"):
        assert re.search(rf'<th scope="row">{re.escape(model)}', text), model
    assert "<strong>Causality</strong>" in text
    assert "-fr→" in text
    assert text.count("<svg") >= 4
    assert "PTX ISA 9.0" in text


def test_a_finding_is_explained(site: Path) -> None:
    text = (site / "bulk" / "bulk-ring-one-slot-no-fence.html").read_text()
    assert "RACE006" in text
    assert "Fix:" in text
    assert "with the accesses marked" in text
    assert "Some execution is undefined" in text


def test_a_model_without_asynchronous_operations_says_so(site: Path) -> None:
    remark = "this model has no rules for asynchronous operations"
    assert (site / "bulk" / "bulk-ring-one-slot-no-fence.html").read_text().count(remark) == 3
    assert remark not in (site / "classic" / "MP+rel+acq.html").read_text()


def test_a_sketch_shows_its_schedule(site: Path) -> None:
    text = (site / "kernels" / "B01-refill-overtakes-generic-reads.html").read_text()
    assert "Assuming:" in text
    assert "RACE006: trace" in text
    assert text.count(f'stroke="{LIGHT["mark"]}"') == 2


def test_a_clean_sketch_shows_a_run(tmp_path: Path) -> None:
    source = LITMUS / "kernels" / "P15-full-empty-ring.litmus"
    if not source.exists():
        pytest.skip("the suites have no such kernel any more")
    assert main(["doc", str(source), "-o", str(tmp_path / "site")]) == 0
    (page,) = [p for p in (tmp_path / "site").rglob("*.html") if p.name != "index.html"]
    text = page.read_text()
    assert "proved" in text
    assert "The beginning of a run of the kernel" in text
    assert "Data of one execution" in text


def test_an_unreadable_test_has_a_page_that_says_so(site: Path) -> None:
    (page,) = (site / "odd_names").glob("br*.html")
    text = page.read_text()
    assert "This file could not be read" in text
    assert "line 4, column 5" in text
    assert "did you mean" in text
    assert "br &lt;oken&gt; &amp; &#34;quoted&#34; #1" in text
    assert "Tests without an answer" in (site / "index.html").read_text()


def test_names_that_file_systems_take_for_one(tmp_path: Path) -> None:
    """Case, Unicode's two ways to write an umlaut, very long names, and the names of the site's own files."""
    stems = ["Ring", "ring", "u\u0308ber", "\u00fcber", "x" * 240, "x" * 239 + "y", "\u5b57" * 80, "style.css/a", "..b"]
    for stem in stems:
        path = tmp_path / "suite" / f"{stem}.litmus"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(ODD)
    found = plan(collect_tests([str(tmp_path / "suite")]), [str(tmp_path / "suite")])
    files = [p.file for p in found]
    assert len(files) == len(stems)
    assert len({unicodedata.normalize("NFKC", f).casefold() for f in files}) == len(stems)
    assert all(len(part.encode()) < 200 for f in files for part in f.split("/"))
    assert not any(f.startswith(("style.css/", ".")) or "/." in f for f in files)


def test_names_and_texts_are_escaped(site: Path) -> None:
    pages = sorted((site / "odd_names").glob("[aA]*.html"))
    assert len({p.name.lower() for p in pages}) == 3, "a page for each, also where case does not count"
    for page in pages:
        text = page.read_text()
        assert "&lt;script&gt;alert" in text
        assert "<script>alert" not in text
    assert "<script>alert" not in (site / "index.html").read_text()


def luminance(color: str) -> float:
    """Relative luminance of ``#rgb`` or ``#rrggbb`` (WCAG 2.2)."""
    digits = color[1:] if len(color) == 7 else "".join(c * 2 for c in color[1:])
    parts = [int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


def test_texts_stand_out_from_their_ground(site: Path) -> None:
    """Contrast of at least 4.5:1 (WCAG 2.2, success criterion 1.4.3), light and dark."""
    style = (site / "style.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    light, dark = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]+)", block)) for block in blocks)
    assert light.keys() == dark.keys()
    pairs = [(text, ground) for text in ("ink", "faint", "link", "bad") for ground in ("paper", "soft")]
    pairs += [(name, f"{name}-soft") for name in ("good", "bad", "warn", "cool")]
    for colors in (light, dark):
        for text, ground in pairs:
            assert contrast(colors[text], colors[ground]) >= 4.5, (text, ground)
    for colors in (LIGHT, DARK):
        for ground in {*FILLS.values(), "box", "panel", "async", "paper"}:
            assert contrast(colors["ink"], colors[ground]) >= 4.5, ground
            assert contrast(colors["faint"], colors[ground]) >= 4.5, ground
        for kind in (*DRAWN, "other"):
            assert contrast(colors[kind], colors["paper"]) >= 4.5, kind


@pytest.mark.daily(one_of="heavy")
def test_equal_runs_write_equal_sites(suite: Path, site: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    subprocess.run(
        [sys.executable, "-m", "mcheck", "doc", str(suite), "-o", str(again), "-j", "1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "5"},
        capture_output=True,
        check=False,
    )
    mine = {p.relative_to(site): p.read_bytes() for p in site.rglob("*") if p.is_file()}
    other = {p.relative_to(again): p.read_bytes() for p in again.rglob("*") if p.is_file()}
    assert mine == other


@pytest.mark.daily(one_of="heavy")
def test_markdown_for_a_repository(suite: Path, tmp_path: Path) -> None:
    folder = tmp_path / "md"
    assert main(["doc", str(suite), "-o", str(folder), "--format", "md", "--title", "Our <tests>"]) == 2
    pages = list(folder.rglob("*.md"))
    assert len(pages) == 1 + len(list(suite.rglob("*.litmus")))
    assert (folder / "README.md").read_text().startswith("# Our \\<tests\\>\n")
    for page in pages:
        text = page.read_text()
        prose = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
        assert "<script>" not in prose.replace("\\<", ""), page
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose):
            assert (page.parent / unquote(link)).is_file(), f"{page}: {link}"
        for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
            assert len(widths) == 1, f"{page}: {block}"
    text = (folder / "classic" / "MP+rel+acq.md").read_text()
    assert "| Causality: d" in text.replace("forbidden | holds ", "")


def test_a_folder_in_use_is_left_alone(suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "mine.txt").write_text("mine")
    assert main(["doc", str(suite), "-o", str(tmp_path / "used")]) == 2
    assert "the folder is not empty" in capsys.readouterr().err
    assert [p.name for p in tmp_path.rglob("*")] == ["used", "mine.txt"]


def test_a_file_is_no_folder(suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["doc", str(suite), "-o", str(tmp_path / "file")]) == 2
    assert "it is not a folder" in capsys.readouterr().err
    assert main(["doc", str(suite), "-o", str(tmp_path / "file" / "site")]) == 2
    assert "cannot write" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_is_an_error(suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    assert main(["doc", str(suite), "-o", str(tmp_path / "locked" / "site")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_a_crash_leaves_nothing_behind(suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mcheck.report.site.build._index", broken)
    assert main(["doc", str(suite / "classic"), "-o", str(tmp_path / "site")]) == 2
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_taken(suite: Path, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    assert main(["doc", str(suite / "classic"), "-o", str(tmp_path / "site"), "-j", "1"]) == 0
    assert check_site(tmp_path / "site") == 3


@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("MCHECK_ALL_PICTURES"), reason="MCHECK_ALL_PICTURES=1 writes the site of all suites"
)
def test_the_site_of_all_suites(tmp_path: Path) -> None:
    folders = [str(p) for p in sorted(LITMUS.iterdir()) if p.is_dir() and p.name != "kernels"]
    assert main(["doc", *folders, "-o", str(tmp_path / "site")]) in (0, 3)
    assert check_site(tmp_path / "site") > 900


def test_a_link_out_of_the_folder_is_not_published(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the password is swordfish\n")
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "plain.litmus").write_text(ODD)
    (suite / "inside.litmus").symlink_to(suite / "plain.litmus")
    (suite / "outside.litmus").symlink_to(tmp_path / "secret")
    (suite / "module.ptx").write_text(".version 8.7\n")
    (suite / "module.json").symlink_to(tmp_path / "secret")  # the launch is on the page of its module
    assert main(["doc", str(suite), "-o", str(tmp_path / "site")]) == 2
    pages = {path.name: path.read_text() for path in (tmp_path / "site").rglob("*") if path.is_file()}
    assert not any("swordfish" in text for text in pages.values())
    assert "outside the given folders" in pages["outside.html"]
    assert "outside the given folders" in pages["module.ptx.html"]


def test_a_page_whose_process_ended_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcheck.report.site.build.page_task", lambda *_, **__: os._exit(1))
    (tmp_path / "plain.litmus").write_text(ODD)
    assert main(["doc", str(tmp_path / "plain.litmus"), "-o", str(tmp_path / "site")]) == 3
    assert "Tests without an answer" in (tmp_path / "site" / "index.html").read_text()


def test_a_site_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        command = [sys.executable, "-m", "mcheck", "doc", LITMUS / "kernels", "-o", tmp_path / "site"]
        process = subprocess.Popen(list(map(str, command)), cwd=ROOT, stderr=subprocess.DEVNULL)
        wait_until(lambda: any(tmp_path.iterdir()))
        process.send_signal(number)
        process.wait(30)
        wait_until(lambda: not any(tmp_path.iterdir()))


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert holds()
