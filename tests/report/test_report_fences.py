"""The report of the synchronisation that a proof needs."""

import json
from pathlib import Path

from mcheck.checking.fences.examination import examine
from mcheck.report.fences import document, lines

KERNEL = Path("litmus/kernels/A05-same-thread-without-proxy-fence-fixed.litmus")


def test_json_and_text_name_the_needed_proxy_fence() -> None:
    examined = examine(str(KERNEL), 20)
    (entry,) = json.loads(document([examined]))["results"]
    assert list(entry) == ["path", "verdict", "removable", "needed", "together", "repairs"]
    assert entry["verdict"] == "proved"
    (needed,) = [each for each in entry["needed"] if each["instruction"].startswith("fence.proxy")]
    assert needed["line"] == 11
    assert needed["without_it"]
    assert any("fence.proxy.async.shared::cta; is needed: " in line for line in lines(examined))
