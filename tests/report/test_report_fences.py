"""The report of the synchronisation that a proof needs."""

import json
from pathlib import Path

import pytest

from mcheck.checking.fences.examination import Limits, examine
from mcheck.report.fences import document, lines
from tests.checking.modules.test_modules_filled_stages import HEAD, RING, launch

MODULE = Path("tests/simt/corpus/cuda/cp_async_groups.ptx")
KERNEL = Path("litmus/kernels/A05-same-thread-without-proxy-fence-fixed.litmus")


def test_json_and_text_name_the_needed_proxy_fence() -> None:
    examined = examine(str(KERNEL), Limits(timeout=20))
    (entry,) = json.loads(document([examined]))["results"]
    assert list(entry) == [
        "path", "verdict", "removable", "needed", "undecided", "together", "changes", "cost", "saved",
        "repairs", "reason",
    ]  # fmt: skip
    assert entry["verdict"] == "proved"
    (needed,) = [each for each in entry["needed"] if each["instruction"].startswith("fence.proxy")]
    assert needed["line"] == 11
    assert needed["without_it"]
    assert any("fence.proxy.async.shared::cta; is needed: " in line for line in lines(examined))


def test_what_is_not_examined_says_why(tmp_path: Path) -> None:
    path = tmp_path / "race.litmus"
    columns = "PTX c\n{ x = 0; }\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n st.weak x, 1 | ld.weak r0, x ;\n"
    path.write_text(columns, encoding="utf-8")
    examined = examine(str(path), Limits(timeout=20))
    assert examined.removals is None
    assert "only what is proved" in (examined.reason or "")
    assert any("not examined" in line for line in lines(examined))


def test_a_launch_that_refills_nothing_says_so(tmp_path: Path) -> None:
    path = tmp_path / "ring.ptx"
    path.write_text(HEAD + RING, encoding="utf-8")
    (tmp_path / "ring.json").write_text(json.dumps(launch(2, 32)), encoding="utf-8")
    examined = examine(str(path), Limits(timeout=20))
    (entry,) = json.loads(document([examined]))["results"]
    assert (entry["verdict"], entry["filled_once"]) == ("proved", ["buf"])
    assert [*lines(examined)][1].startswith("  this launch fills no stage of `buf` twice")


@pytest.mark.daily(days=4, least=0)
def test_copies_of_a_line_of_the_source_are_one_entry_with_the_line() -> None:
    examined = examine(str(MODULE), Limits(timeout=60))
    (entry,) = json.loads(document([examined]))["results"]
    assert entry["removable"] == []
    waits = next(each for each in entry["needed"] if each["instruction"] == "cp.async.wait_group 1;")
    assert waits["source"] == "cp_async_groups.cu:21"
    assert waits["without_it"] == ["RACE003"]
    copies = [waits["line"], *(each["line"] for each in waits["with"])]
    text = MODULE.read_text().splitlines()
    assert [text[line - 1].strip() for line in copies] == ["cp.async.wait_group 1;"] * 5
    told = next(line for line in lines(examined) if "wait_group 1" in line)
    lines_of_module = f"(lines {', '.join(map(str, copies))} of the module)"
    assert told == f"  cp_async_groups.cu:21: cp.async.wait_group 1; is needed: RACE003 {lines_of_module}"
