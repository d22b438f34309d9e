"""The report of the synchronisation that a proof needs."""

import json
from pathlib import Path

from mcheck.checking.fences.examination import examine
from mcheck.report.fences import document, lines

KERNEL = Path("litmus/kernels/A05-same-thread-without-proxy-fence-fixed.litmus")


def test_json_and_text_name_the_needed_proxy_fence() -> None:
    examined = examine(str(KERNEL), 20)
    (entry,) = json.loads(document([examined]))["results"]
    assert list(entry) == ["path", "verdict", "removable", "needed", "undecided", "together", "repairs", "reason"]
    assert entry["verdict"] == "proved"
    (needed,) = [each for each in entry["needed"] if each["instruction"].startswith("fence.proxy")]
    assert needed["line"] == 11
    assert needed["without_it"]
    assert any("fence.proxy.async.shared::cta; is needed: " in line for line in lines(examined))


def test_what_is_not_examined_says_why(tmp_path: Path) -> None:
    columns = "PTX c\n{ x = 0; }\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n st.relaxed.gpu x, 1 | ld.relaxed.gpu r0, x ;\n"
    asks = (
        "PTX a\n{ .global .u32 x = 0; }\nP@cta 0 { fence.sc.gpu; st.relaxed.gpu.global.u32 [x], 1; }\nexists (x == 1)\n"
    )
    for name, text, why in (("c", columns, "columns"), ("a", asks, "condition")):
        path = tmp_path / f"{name}.litmus"
        path.write_text(text, encoding="utf-8")
        examined = examine(str(path), 20)
        assert examined.removals is None
        assert why in (examined.reason or "")
        assert any("not examined" in line for line in lines(examined))
