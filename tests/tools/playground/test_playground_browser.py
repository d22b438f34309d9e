"""The playground in a headless Chromium without a network: what it answers, links, pictures, stopping."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from mcheck.report.playground_links import encode_fragment
from mcheck.tools.playground.build import build

ROOT = Path(__file__).parents[3]
PYODIDE = Path(os.environ.get("MCHECK_PYODIDE", ROOT / "node_modules" / "pyodide"))
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip
REFILL = re.search(r"title=refill.litmus\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[1]
SHOWN = re.search(
    r"\$ mcheck run refill.litmus\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
)[1]
ADD = "  atom.relaxed.gpu.global.add.u32 r{0}, [x + 4 * {0}], 1;\n"
THREAD = "P{0}@cta {0} {{\n" + "".join(map(ADD.format, range(8))) + "}}\n"
ENDLESS = "PTX slow\n{ .global .u32 x[64]; }\n" + "".join(map(THREAD.format, range(6))) + "exists (P0:r0 == 1)\n"

WALK = """<!doctype html><title>walk</title><iframe id="f" width="1200" height="900"></iframe>
<script type="module">
const endless = ENDLESS, frame = document.getElementById("f"), said = {};
const opened = performance.now();
await new Promise((done) => { frame.onload = done; frame.src = "/index.html#FRAGMENT"; });
const d = frame.contentDocument, state = () => d.getElementById("state").textContent;
const until = async (what) => {
  for (const start = performance.now(); !what.test(state());) {
    if (performance.now() - start > 60000) throw new Error(`${what} after ${Object.keys(said).pop()}: ${state()}`);
    await new Promise((done) => setTimeout(done, 20));
  }
};
const answered = async (id) => {
  const start = performance.now();
  d.getElementById(id).click();
  await until(/, [0-9.]+ s$|below|none|failed/);
  return (performance.now() - start) / 1000;
};
try {
  while (d.getElementById("run").disabled) await new Promise((done) => setTimeout(done, 20));
  said.first = await answered("run");
  said.cold = (performance.now() - opened) / 1000;
  said.report = d.getElementById("report").textContent;
  said.after = await answered("run");
  said.marked = [...d.querySelectorAll("#numbers .marked")].map((line) => line.textContent.trim());
  await answered("allowed");
  said.pictures = d.querySelectorAll("#pictures figure").length;
  said.boxes = d.querySelector("#pictures figure div").shadowRoot.querySelectorAll("rect").length;
  const seen = () => ({
    state: state(), report: d.getElementById("report").textContent, badge: d.querySelectorAll("#state .verdict").length,
    pictures: d.querySelectorAll("#pictures figure").length, stale: d.querySelectorAll(".stale").length,
    marked: d.querySelectorAll("#numbers .marked").length, draw: !d.getElementById("draw").hidden,
  });
  const program = d.getElementById("text"), other = d.getElementById("example");
  program.value += " ";
  program.dispatchEvent(new Event("input"));
  said.edited = seen();
  await answered("run");
  await answered("allowed");
  said.fresh = seen();
  program.value = "PTX nothing";
  program.dispatchEvent(new Event("input"));
  await answered("run");
  said.unread = seen();
  other.selectedIndex = 1;
  other.dispatchEvent(new Event("change"));
  said.chosen = seen();
  await answered("run");
  d.getElementById("model").selectedIndex = 2;
  d.getElementById("model").dispatchEvent(new Event("change"));
  said.model = seen();
  program.value = endless;
  d.getElementById("run").click();
  await new Promise((done) => setTimeout(done, 300));
  other.selectedIndex = 2;
  other.dispatchEvent(new Event("change"));
  said.meanwhile = seen();
  d.getElementById("stop").click();
  program.value = REFILL;
  d.getElementById("model").selectedIndex = 0;
  d.getElementById("mode").value = "check";
  await answered("run");
  said.check = d.getElementById("report").textContent;
  const example = d.getElementById("example");
  example.selectedIndex = example.options.length - 1;
  example.dispatchEvent(new Event("change"));
  await answered("run");
  said.sketch = d.getElementById("report").textContent;
  said.engines = getComputedStyle(d.getElementById("engines")).display;
  d.getElementById("mode").value = "run";
  d.getElementById("text").value = endless;
  d.getElementById("run").click();
  await new Promise((done) => setTimeout(done, 300));
  said.working = state();
  d.getElementById("stop").click();
  said.stopped = state();
  d.getElementById("text").value = "PTX nothing";
  await answered("run");
  said.error = d.getElementById("report").textContent;
  program.value = REFILL.replace("st.shared.u32 [buf], 1;", "st.shared.u32 [buf], 1; // typed");
  program.dispatchEvent(new Event("input"));
  await until(/, [0-9.]+ s$/);
  said.typed = seen();
  d.querySelector("#report .code").click();
  while (d.getElementById("code").hidden) await new Promise((done) => setTimeout(done, 20));
  said.code = d.querySelector("#code h2").textContent;
  said.programs = d.querySelectorAll("#code pre").length;
  const cat = d.getElementById("cat");
  d.getElementById("own").open = true;
  while (!cat.value) await new Promise((done) => setTimeout(done, 20));
  said.cat = cat.value.includes("acyclic");
  cat.value = cat.value + "\\nempty rf as nothing_is_read\\n";
  cat.dispatchEvent(new Event("input"));
  await until(/, [0-9.]+ s$/);
  said.own = d.getElementById("report").textContent;
  said.kept = JSON.parse(frame.contentWindow.localStorage.getItem("mcheck"));
  cat.value = "nonsense";
  cat.dispatchEvent(new Event("input"));
  await until(/, [0-9.]+ s$/);
  said.wrong = d.getElementById("report").textContent;
  d.getElementById("shipped").click();
  await until(/, [0-9.]+ s$/);
  said.shipped = d.getElementById("report").textContent;
  said.home = d.getElementById("home").getAttribute("href");
  program.value = "PTX nothing";
  d.getElementById("link").click();
  while (!/link/.test(state())) await new Promise((done) => setTimeout(done, 20));
  said.address = frame.contentWindow.location.hash;
  said.wide = d.documentElement.scrollWidth <= d.documentElement.clientWidth;
  frame.width = 380;
  await new Promise((done) => setTimeout(done, 200));
  said.narrow = d.documentElement.scrollWidth <= d.documentElement.clientWidth + 1;
} catch (error) { said.failed = String(error); }
await fetch("/said", { method: "POST", body: JSON.stringify(said) });
</script>"""


class Handler(SimpleHTTPRequestHandler):
    """Serves the folder, and takes what the page says."""

    def __init__(self, heard: Queue[dict[str, Any]], *arguments: Any, **options: Any) -> None:
        self.heard = heard
        super().__init__(*arguments, **options)

    def do_POST(self) -> None:
        """What the walk has seen."""
        self.heard.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - so it is called there
        """Says nothing."""


@pytest.fixture
def said(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """What a walk through the playground saw."""
    folder = tmp_path / "playground"
    build(str(folder), str(PYODIDE), home="../index.html")
    walk = WALK.replace("ENDLESS", json.dumps(ENDLESS)).replace("FRAGMENT", encode_fragment(REFILL))
    walk = walk.replace("REFILL", json.dumps(REFILL))
    (folder / "walk.html").write_text(walk)
    heard: Queue[dict[str, Any]] = Queue()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, heard, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}/walk.html"
    browser = subprocess.Popen(
        [str(BROWSER), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--remote-debugging-port=0", address],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield heard.get(timeout=240)
    finally:
        browser.terminate()
        browser.wait(20)
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed (Debian: apt-get install chromium)")
@pytest.mark.skipif(not PYODIDE.is_dir(), reason="no pyodide: npm install pyodide, or MCHECK_PYODIDE names its folder")
def test_the_playground_answers_as_the_command_line(said: dict[str, Any]) -> None:
    assert "failed" not in said, said
    assert said["report"] == SHOWN.replace("refill.litmus", "program.litmus")
    assert said["marked"] == ["10", "12"]
    assert said["after"] < 3
    assert said["after"] < said["first"] < said["cold"] < 60, "15 s where nobody else is at work"
    assert said["pictures"] == 2
    assert said["boxes"] > 10
    bare = {"report": "", "badge": 0, "pictures": 0, "stale": 0, "marked": 0, "draw": False}
    edited = said["edited"]
    assert edited["report"] == said["report"], "it can be read while the program is mended"
    changed = "changed since: run it again"
    assert (edited["state"], edited["badge"], edited["stale"], edited["marked"]) == (changed, 0, 2, 0)
    assert not edited["draw"], "pictures would be of another program than the report"
    assert (said["fresh"]["badge"], said["fresh"]["pictures"], said["fresh"]["stale"]) == (0, 2, 0)
    assert said["unread"]["report"].startswith("error[LIT007]")
    assert (said["unread"]["pictures"], said["unread"]["stale"], said["unread"]["draw"]) == (0, 0, False)
    assert said["chosen"] == {**bare, "state": "ready"}
    assert (said["model"]["state"], said["model"]["stale"]) == (changed, 2), "the answer of another model"
    assert said["meanwhile"] == {**bare, "state": "ready"}
    assert "RACE004" in said["check"]
    assert said["sketch"].startswith("race      program.litmus (as expected)\n"), "the sketch with whole warps"
    assert said["engines"] == "none"
    assert "at work" in said["working"]
    assert said["stopped"] == "stopped"
    assert said["error"].startswith("error[LIT007]: the init block is missing\n  --> program.litmus:1:12")
    assert said["address"] == "#" + encode_fragment("PTX nothing") or said["address"].startswith("#t=")
    assert said["typed"]["report"].startswith("mismatch pass program.litmus\n"), "without a click"
    assert said["typed"]["stale"] == 0
    assert (said["code"], said["programs"]) == ("RACE004 generic-write-invisible-to-async-proxy", 2)
    assert said["cat"]
    assert "under edited.cat" in said["own"]
    assert "P0" not in said["own"]
    assert said["kept"]["own"].endswith("nothing_is_read\n")
    assert "// typed" in said["kept"]["text"]
    assert "edited.cat:1:1" in said["wrong"]
    assert said["shipped"] == said["typed"]["report"]
    assert said["home"] == "../index.html"
    assert said["wide"]
    assert said["narrow"]
