"""A walk through a site in a headless Chromium: index, search, a forbidden outcome's cycle, a finding."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mcheck.tools.cli.main import main

ROOT = Path(__file__).parents[2]
LITMUS = ROOT / "litmus"
BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--enable-logging=stderr", "--virtual-time-budget=30000",
)  # fmt: skip

WALK = """<!doctype html><title>walk</title><iframe id="f" width="1200" height="900"></iframe><pre id="out"></pre>
<script>
const frame = document.getElementById("f"), said = {};
const load = (url) => new Promise((done) => { frame.onload = () => done(frame.contentDocument); frame.src = url; });
const click = (link) => new Promise((done) => { frame.onload = () => done(frame.contentDocument); link.click(); });
const rows = (d) => [...d.querySelectorAll("tr[data-words]:not([hidden])")];
const shown = (d) => rows(d).map((row) => row.querySelector("a").textContent);
const say = (d, id, text) => { const f = d.getElementById(id); f.value = text; f.dispatchEvent(new Event("input")); };
(async () => {
  try {
    let d = await load("/index.html");
    said.all = shown(d).length;
    said.count = d.getElementById("count").textContent;
    say(d, "words", "RACE006 ring");
    said.search = shown(d);
    said.sections = [...d.querySelectorAll("section.suite:not([hidden]) h2")].map((h) => h.textContent);
    say(d, "words", "no such test at all");
    said.none = d.getElementById("count").textContent;
    say(d, "words", ""); say(d, "suite", "classic"); say(d, "verdict", "fail");
    said.filtered = shown(d);
    d = await click([...d.querySelectorAll("a")].find((a) => a.textContent === "MP+rel+acq"));
    said.title = d.querySelector("h1").textContent;
    const row = d.querySelector("tr.forbidden");
    said.forbidden = row.textContent.replace(/\\s+/g, " ").trim();
    const link = row.querySelector("a");
    link.click();
    const figure = d.querySelector(link.getAttribute("href"));
    said.cycle = [...figure.querySelectorAll("path")].filter((p) => p.getAttribute("stroke-width") === "3.4").length;
    const box = figure.querySelector("svg").getBoundingClientRect();
    said.visible = box.width > 200 && box.height > 150;
    said.overlaps = 0;
    for (const svg of d.querySelectorAll("svg")) {
      const rects = [...svg.querySelectorAll("text")].map((t) => t.getBoundingClientRect());
      rects.forEach((a, k) => rects.slice(0, k).forEach((b) => { said.overlaps +=
        a.left + 1 < b.right && b.left + 1 < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom ? 1 : 0; }));
    }
    d = await load("/bulk/bulk-ring-one-slot-no-fence.html");
    const finding = d.querySelector("article.finding");
    said.finding = finding.querySelector("h3").textContent;
    const line = finding.querySelector("a.source-line");
    line.click();
    await new Promise((done) => setTimeout(done, 200));
    said.opened = d.querySelector("details").open;
    said.cut = [...d.querySelectorAll("figure .wide")].filter((part) => part.scrollWidth > part.clientWidth + 1).length;
    said.wide = d.documentElement.scrollWidth <= d.documentElement.clientWidth;
    frame.width = 380;
    await new Promise((done) => setTimeout(done, 200));
    said.narrow = d.documentElement.scrollWidth <= d.documentElement.clientWidth + 1;
    d = await load("/bad/broken.html");
    said.broken = d.querySelector("h2").textContent;
  } catch (error) { said.error = String(error); }
  document.getElementById("out").textContent = JSON.stringify(said);
})();
</script>"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - so it is called there
        """Says nothing."""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A site behind a local server, with the page that walks through it."""
    tests = tmp_path / "tests"
    for test in (
        "classic/MP+rel+acq",
        "classic/MP+rlx+rlx",
        "bulk/bulk-ring-one-slot-no-fence",
        "bulk/bulk-ring-one-slot",
    ):
        target = tests / f"{test}.litmus"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text((LITMUS / f"{test}.litmus").read_text())
    (tests / "bad").mkdir()
    (tests / "bad" / "broken.litmus").write_text("PTX broken\n{ x=0; }\n P0@cta 0,gpu 0 ;\n st.wek x, 1 ;\n")
    site = tmp_path / "site"
    assert main(["doc", str(tests), "-o", str(site), "-j", "1"]) == 2
    (site / "walk.html").write_text(WALK)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.daily(days=4, least=0)
@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed (Debian: apt-get install chromium)")
def test_a_walk_through_the_site(address: str, tmp_path: Path) -> None:
    assert BROWSER is not None
    done = subprocess.run(
        [BROWSER, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", f"{address}/walk.html"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found = re.search(r'<pre id="out">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, done.stderr[-2000:]
    assert found[1], done.stderr[-2000:]
    said = json.loads(found[1].replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))
    assert "error" not in said, said
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    assert said["all"] == 5
    assert said["count"] == "5 pages"
    assert said["search"] == ["bulk-ring-one-slot-no-fence"]
    assert said["sections"] == ["bulk"]
    assert said["none"] == "0 pages"
    assert said["filtered"] == ["MP+rel+acq"]
    assert said["title"] == "MP+rel+acq"
    assert "Causality" in said["forbidden"]
    assert "cycle" in said["forbidden"]
    assert said["cycle"] == 4
    assert said["visible"]
    assert said["overlaps"] == 0
    assert said["finding"].startswith("error RACE006")
    assert said["opened"], "the link to a line opens the listing"
    assert said["cut"] == 0, "pictures of up to 1600 pixels are seen whole in a window of 1200"
    assert said["wide"], "only wide parts scroll, never the page"
    assert said["narrow"], "only wide parts scroll, never the page"
    assert said["broken"] == "This file could not be read"


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed (Debian: apt-get install chromium)")
def test_a_picture_keeps_its_indentation(tmp_path: Path) -> None:
    """A space that is collapsed is none of the characters that a browser draws."""
    assert BROWSER is not None
    picture = tmp_path / "picture.svg"
    asked = ["outcomes", str(LITMUS / "reduce" / "reduce-add-bf16.litmus"), "--graph", "1", "-o", str(picture)]
    assert main(asked) == 0
    count = """<pre id="out"></pre><script>
    const texts = [...document.querySelectorAll("svg text")].filter((t) => t.textContent.startsWith(" "));
    const drawn = texts.filter((t) => t.getNumberOfChars() === t.textContent.length);
    document.getElementById("out").textContent = `${drawn.length} of ${texts.length}`;
    </script>"""
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><title>picture</title>{picture.read_text(encoding='utf-8')}{count}", "utf-8")
    done = subprocess.run(
        [BROWSER, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found = re.search(r'<pre id="out">(\d+) of (\d+)</pre>', done.stdout)
    assert found is not None, done.stderr[-2000:]
    assert int(found[2]) > 3
    assert found[1] == found[2]
