"""The theme of the documentation in a headless Chromium: no script throws, in light and in dark."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--dump-dom",
    "--enable-logging=stderr", "--virtual-time-budget=6000",
)  # fmt: skip


class Quiet(SimpleHTTPRequestHandler):
    """Serves the folder."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - so it is called there
        """Says nothing."""


@pytest.mark.daily(days=6, least=0)
@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed (Debian: apt-get install chromium)")
def test_no_script_of_the_front_page_throws(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    from mkdocs.utils.yaml import yaml_load

    settings = yaml_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    theme = {**settings["theme"], "custom_dir": str(ROOT / settings["theme"]["custom_dir"])}
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Front\n\nA page, and `code`.\n", encoding="utf-8")
    shutil.copy(ROOT / "docs" / "style.css", docs)
    less = {
        "site_name": settings["site_name"],
        "theme": theme,
        "plugins": ["search"],
        "extra_css": settings["extra_css"],
    }
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(less), encoding="utf-8")
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path / "site")]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "site")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        for page in ("index.html", "404.html"):
            for mode, scheme in (("light", 1), ("dark", 0)):
                command = [
                    str(BROWSER), *FLAGS, f"--blink-settings=preferredColorScheme={scheme}",
                    f"--user-data-dir={tmp_path / 'profile'}", f"http://127.0.0.1:{server.server_port}/{page}",
                ]  # fmt: skip
                seen = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
                assert "Uncaught" not in seen.stderr
                assert f'data-bs-theme="{mode}"' in seen.stdout
    finally:
        server.shutdown()
        server.server_close()
