"""The report of the synchronisation that a proof needs."""

import json
from pathlib import Path

from mcheck.checking.check.command import check_case
from mcheck.checking.fences.removal import find_removals
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.result import Result
from mcheck.report.fences import Examined, document, lines

KERNEL = Path("litmus/kernels/A05-same-thread-without-proxy-fence-fixed.litmus")


def test_json_and_text_name_the_needed_proxy_fence() -> None:
    def check(text: str) -> Result:
        return check_case(Case(str(KERNEL), text=text), Settings(timeout=20), Options())

    text = KERNEL.read_text()
    examined = Examined(str(KERNEL), check(text).verdict, find_removals(text, check))
    (entry,) = json.loads(document([examined]))["results"]
    assert list(entry) == ["path", "verdict", "removable", "needed", "together", "repairs"]
    assert entry["verdict"] == "proved"
    (needed,) = [each for each in entry["needed"] if each["instruction"].startswith("fence.proxy")]
    assert needed["line"] == 11
    assert needed["without_it"]
    assert any("fence.proxy.async.shared::cta; is needed: " in line for line in lines(examined))
