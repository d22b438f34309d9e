"""Pictures of executions: valid, without overlapping texts, the same on every run, and true to the engine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from mcheck.answers.exploration import Exploration
from mcheck.cat import load_model
from mcheck.engines.explicit.exploration import explore
from mcheck.events.execution_graph import Execution
from mcheck.frontend.litmus import load, parse
from mcheck.report.picture.formats import dot, graphml, network
from mcheck.report.picture.layout import Layout, Rect, lay_out
from mcheck.report.picture.shapes import LIGHT, THICK
from mcheck.report.picture.svg import DARK, FONT, draw

ROOT = Path(__file__).parents[2]
LITMUS = ROOT / "litmus"
SUITES = sorted({f.parent.name for f in LITMUS.rglob("*.litmus")} - {"kernels"})


def explored(path: Path, most: int = 6) -> Exploration:
    """All that a page would draw of a test."""
    program = load(str(path))
    return explore(program, load_model(program.model or "ptx-9.0"), forbidden=most, drawn=most, budget=1.0)


def executions(found: Exploration) -> Iterator[Execution]:
    yield from found.allowed.values()
    yield from (f.execution for f in found.forbidden if f.execution is not None)
    yield from (found.findings or {}).values()


def texts(layout: Layout) -> list[Rect]:
    """Everything with a text in it."""
    return [
        *(line.label.rect for line in layout.lines if line.label),
        *layout.boxes,
        *(label.rect for label in layout.heads),
        *(band.label.rect for band in layout.bands),
        *(label.rect for label in layout.caption),
        *(label.rect for _, label in layout.legend),
    ]


def runs_through(a: tuple[int, int], b: tuple[int, int], rect: Rect) -> bool:
    """Whether the line from a to b has a point inside, found by cutting it down to the rectangle."""
    low, high = 0.0, 1.0
    for start, step, least, most in (
        (a[0], b[0] - a[0], rect.x, rect.x + rect.width),
        (a[1], b[1] - a[1], rect.y, rect.y + rect.height),
    ):
        if step == 0:
            if not least < start < most:
                return False
            continue
        ends = sorted(((least - start) / step, (most - start) / step))
        low, high = max(low, ends[0]), min(high, ends[1])
    return low + 1e-9 < high


def trespassing(layout: Layout) -> list[str]:
    """Edges that run through a box or a label that is not theirs."""
    out = []
    for k, line in enumerate(layout.lines):
        ends = {line.route.edge.source, line.route.edge.target}
        foreign = [rect for b, rect in enumerate(layout.boxes) if b not in ends]
        foreign += [o.label.rect for j, o in enumerate(layout.lines) if j != k and o.label]
        for a, b in pairwise(line.points):
            out += [f"{line.route.edge} through {rect}" for rect in foreign if runs_through(a, b, rect)]
    return out


@pytest.mark.daily
@pytest.mark.parametrize("suite", SUITES)
def test_no_texts_overlap_in_the_suites(suite: str) -> None:
    """A sample of each suite; ``MCHECK_ALL_PICTURES=1`` draws every test."""
    step = 1 if os.environ.get("MCHECK_ALL_PICTURES") else 12
    drawn = 0
    for path in sorted((LITMUS / suite).rglob("*.litmus"))[::step]:
        for execution in executions(explored(path)):
            layout = lay_out(execution)
            rects = texts(layout)
            for k, a in enumerate(rects):
                clash = [b for b in rects[:k] if a.overlaps(b)]
                assert not clash, f"{path}: {execution.title}: {a} and {clash[0]}"
                assert a.x >= 0, path
                assert a.x + a.width <= layout.width, path
                assert a.y + a.height <= layout.height, path
            assert not (found := trespassing(layout)), f"{path}: {execution.title}: {found[0]}"
            drawn += 1
            ET.fromstring(draw(execution))
    assert drawn


@pytest.mark.parametrize(
    "name",
    [
        "warps/warps-shfl-bfly",  # labels of straight edges beside the lanes of others: channels get wider
        "warps/warps-match-any",
        "bulk/bulk-multicast-reuse-restricted-release",  # the names of two mbarriers are wider than their bands
    ],
)
def test_labels_find_room_where_it_is_narrow(name: str) -> None:
    for execution in executions(explored(LITMUS / f"{name}.litmus", most=1)):
        layout = lay_out(execution)
        rects = texts(layout)
        assert not trespassing(layout)
        assert not layout.crossed
        assert not any(a.overlaps(b) for k, a in enumerate(rects) for b in rects[:k])


def wide(threads: int, stores: int) -> str:
    """A table with many events."""
    heads = " | ".join(f"P{t}@cta {t},gpu 0" for t in range(threads))
    rows = [
        " | ".join(
            f"ld.relaxed.gpu r{k}, x{(t + k) % threads}" if k == 1 else f"st.weak x{(t + k) % threads}, {k + 1}"
            for t in range(threads)
        )
        for k in range(stores)
    ]
    inits = " ".join(f"x{t} = 0;" for t in range(threads))
    body = "".join(f" {row} ;\n" for row in [heads, *rows])
    return f"PTX wide\n{{ {inits} }}\n{body}exists (P0:r1 == 1)\n"


def test_four_threads_and_thirty_events_are_readable() -> None:
    program = parse(wide(4, 8), "wide.litmus")
    found = explore(program, load_model("ptx-9.0"), drawn=1, timeout=60)
    (execution,) = list(found.allowed.values())[:1]
    assert len(execution.boxes) == 32
    layout = lay_out(execution)
    rects = texts(layout)
    assert not any(a.overlaps(b) for k, a in enumerate(rects) for b in rects[:k])
    assert not trespassing(layout)
    assert layout.width < 1800


@pytest.mark.daily(days=3, least=0)
def test_boxes_lie_below_what_precedes_them() -> None:
    for execution in executions(explored(LITMUS / "bulk" / "bulk-ring-one-slot.litmus")):
        layout = lay_out(execution)
        for edge in execution.edges:
            if edge.kind == "po":
                assert layout.boxes[edge.source].y < layout.boxes[edge.target].y
            if edge.both:
                assert layout.grid.row[edge.source] == layout.grid.row[edge.target]


def test_edges_start_and_end_at_their_boxes() -> None:
    for execution in executions(explored(LITMUS / "bulk" / "bulk-ring-one-slot.litmus")):
        layout = lay_out(execution)
        for line in layout.lines:
            for point, box in (
                (line.points[0], layout.boxes[line.route.edge.source]),
                (line.points[-1], layout.boxes[line.route.edge.target]),
            ):
                assert box.x <= point[0] <= box.x + box.width
                assert box.y <= point[1] <= box.y + box.height


def test_asynchronous_operations_have_columns_beside_their_thread() -> None:
    execution = next(executions(explored(LITMUS / "bulk" / "bulk-ring-one-slot.litmus")))
    layout = lay_out(execution)
    kinds = [(c.thread, c.asynchronous) for c in layout.grid.columns]
    assert kinds == [(0, False), (0, True), (1, False)]
    assert [(b.band.barrier, b.band.phase) for b in layout.bands] == [("full", 0), ("full", 1), ("empty", 0)]


@pytest.mark.parametrize(
    ("test", "code", "told"),
    [
        ("liveness/Lock+two-locks-crossed", "DEAD001", [("P0", "waits forever"), ("P1", "waits forever")]),
        ("mbarrier/mbarrier-count-two-one-arrives", "DEAD003", [("first", "phase 0: 1 of 2 arrivals")]),
        ("bulk/bulk-expect-too-large", "DEAD003", [("issuer", "16 bytes pending")]),
        ("undefined/undefined-bulk-size-24", "UB101", [("first", "UB101: undefined")]),
        ("undefined/undefined-arrive-after-inval", "UB201", [("first", "UB201: undefined")]),
    ],
)
def test_waits_and_undefined_operations_are_marked(test: str, code: str, told: list[tuple[str, str]]) -> None:
    found = explored(LITMUS / f"{test}.litmus")
    (execution,) = [e for f, e in (found.findings or {}).items() if f.code == code]
    marked = [b for b in execution.boxes if b.marked]
    assert [
        (execution.columns[b.column].title, line)
        for b in marked
        for line in b.lines
        if (execution.columns[b.column].title, line) in told
    ] == told
    assert f'stroke="{LIGHT["mark"]}"' in draw(execution)


def test_a_forbidden_state_shows_its_cycle() -> None:
    found = explored(LITMUS / "classic" / "MP+rel+acq.litmus")
    (forbidden,) = found.forbidden
    assert forbidden.state == (("P1:r0", 1), ("P1:r1", 0))
    assert forbidden.axiom == "Causality"
    assert forbidden.wanted
    assert forbidden.execution is not None
    wrong = [(e.kind, e.source, e.target) for e in forbidden.execution.edges if e.violated]
    assert sorted(kind for kind, _, _ in wrong) == ["fr", "po", "po", "rf"]
    nodes = {a for _, a, _ in wrong}
    assert nodes == {b for _, _, b in wrong}, "every box of a cycle is entered and left"
    assert f'stroke-width="{THICK}"' in draw(forbidden.execution)


@pytest.mark.parametrize(
    ("test", "axiom"),
    [
        ("classic/MP+rel+acq", "Causality"),
        ("classic/IRIW+fence.scs", "Causality"),
        ("classic/LB+datas", "NoThinAir"),
        ("coherence/CoWR", "ScPerLocation"),
        ("coherence/CoWW", "Coherence"),
        ("atomics/Cas+one-winner", "Atomicity"),
    ],
)
def test_the_axiom_is_the_one_that_fails(test: str, axiom: str) -> None:
    path = LITMUS / f"{test}.litmus"
    if not path.exists():
        pytest.skip(f"the suites have no {test} any more")
    found = explored(path)
    assert axiom in {f.axiom for f in found.forbidden}


@pytest.mark.daily
@pytest.mark.parametrize("suite", SUITES)
def test_allowed_and_forbidden_states_are_apart(suite: str) -> None:
    """What is drawn as allowed fails no axiom, what is forbidden fails one, and no state is both."""
    for path in sorted((LITMUS / suite).rglob("*.litmus"))[::15]:
        found = explored(path)
        states = {o.state for o in found.answer.outcomes}
        assert not states & {f.state for f in found.forbidden}, path
        assert all(e.axiom is None for e in found.allowed.values()), path
        assert all(f.axiom and f.execution is not None for f in found.forbidden), path


def test_a_race_marks_its_two_accesses() -> None:
    found = explored(LITMUS / "bulk" / "bulk-ring-one-slot-no-fence.litmus")
    assert found.findings
    for finding, execution in found.findings.items():
        assert sum(box.marked for box in execution.boxes) == len(finding.accesses) == 2


@pytest.mark.daily(days=4, least=0)
def test_the_same_bytes_under_every_hash_seed() -> None:
    program = (
        "from pathlib import Path\n"
        "from mcheck.cat import load_model\n"
        "from mcheck.engines.explicit.exploration import explore\n"
        "from mcheck.report.picture.svg import draw\n"
        "from mcheck.report.picture.formats import dot, graphml\n"
        "from mcheck.frontend.litmus import load\n"
        "for test in ('bulk/bulk-ring-one-slot', 'classic/IRIW+fence.scs', 'bulk/bulk-multicast-to-two'):\n"
        "    found = explore(load(f'litmus/{test}.litmus'), load_model('ptx-9.0'), forbidden=3, drawn=3)\n"
        "    for e in [*found.allowed.values(), *(f.execution for f in found.forbidden), *found.findings.values()]:\n"
        "        print(draw(e), dot(e), graphml(e))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            check=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "77")
    }
    assert len(outputs) == 1


def test_the_picture_says_what_it_shows() -> None:
    """A title and a description for whoever cannot see it, and nothing to fetch or to run."""
    execution = next(executions(explored(LITMUS / "bulk" / "bulk-ring-one-slot.litmus")))
    text = draw(execution, prefix="p7")
    root = ET.fromstring(text)
    ns = {"s": "http://www.w3.org/2000/svg"}
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-labelledby"] == "p7t p7d"
    title, desc = root.find("s:title", ns), root.find("s:desc", ns)
    assert title is not None
    assert "bulk-ring-one-slot" in (title.text or "")
    assert desc is not None
    assert desc.text
    assert all(f"{box.name}, " in desc.text for box in execution.boxes)
    assert "prefers-color-scheme" in text
    assert "<script" not in text
    assert "href" not in text
    assert text.count("http") == 1, "only the namespace"


def _paints(text: str) -> Iterator[tuple[str, str, str, list[str]]]:
    """Of every shape: tag, the attribute that colours it, its value, and the shape's classes."""
    for node in ET.fromstring(text).iter():
        tag = node.tag.rsplit("}", 1)[-1]
        if tag in ("rect", "path", "polygon", "text"):
            for attribute in ("fill", "stroke"):
                if (attribute == "fill") or attribute in node.attrib:
                    yield tag, attribute, node.attrib.get(attribute, ""), node.attrib.get("class", "").split()


def test_colors_are_literal_and_have_a_dark_counterpart() -> None:
    """Converters outside browsers know neither variables nor media queries: a shape without a colour is black."""
    for execution in executions(explored(LITMUS / "bulk" / "bulk-ring-one-slot-no-fence.litmus", most=1)):
        text = draw(execution)
        assert "var(" not in text
        rules, query, dark = text.partition("@media(prefers-color-scheme:dark){")
        assert query
        assert not re.search(r"(fill|stroke|background):", rules[rules.index("<style>") :]), "outside it none wins"
        for tag, attribute, color, classes in _paints(text):
            if (tag, attribute, color) == ("path", "fill", "none"):
                continue
            name = next(c[2:] for c in classes if c[:2] == attribute[0] + "-")
            assert color == LIGHT[name], tag
            assert f".{attribute[0]}-{name}{{{attribute}:{DARK[name]}}}" in dark


@pytest.mark.skipif(shutil.which("rsvg-convert") is None, reason="no rsvg-convert (Debian: librsvg2-bin)")
def test_a_converter_draws_light_paper_and_boxes(tmp_path: Path) -> None:
    import zlib

    execution = next(executions(explored(LITMUS / "classic" / "MP+rel+acq.litmus", most=1)))
    (tmp_path / "a.svg").write_text(draw(execution))
    png = subprocess.run(["rsvg-convert", str(tmp_path / "a.svg")], capture_output=True, check=True).stdout
    at, data = 8, b""
    while at < len(png):
        size, kind = int.from_bytes(png[at : at + 4]), png[at + 4 : at + 8]
        data += png[at + 8 : at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    width, height = int.from_bytes(png[16:20]), int.from_bytes(png[20:24])
    channels = {2: 3, 6: 4}[png[25]]  # 8 bits each, with or without alpha
    # Of the first row, the first pixel is as it is, whichever filter the row has.
    assert zlib.decompress(data)[1 : 1 + channels] == b"\xff" * channels, "paper"
    layout = lay_out(execution)
    assert (layout.width, layout.height) == (width, height)


@pytest.mark.daily(days=4, least=0)
@pytest.mark.skipif(shutil.which("rsvg-convert") is None, reason="no rsvg-convert (Debian: librsvg2-bin)")
def test_a_converter_keeps_the_indentation() -> None:
    """Further lines of a box are indented: converters outside browsers do not know ``white-space``."""

    def convert(text: str) -> bytes:
        return subprocess.run(["rsvg-convert"], input=text.encode(), capture_output=True, check=True).stdout

    execution = next(executions(explored(LITMUS / "reduce" / "reduce-add-bf16.litmus", most=1)))
    text = draw(execution)
    flush = re.sub("> +", ">", text)
    assert text != flush
    assert convert(text) != convert(flush)


@pytest.mark.skipif(shutil.which("fc-match") is None, reason="no fc-match (Debian: fontconfig)")
def test_the_first_font_is_monospaced() -> None:
    """CairoSVG takes the first name, and without such a font what the system has in its place."""
    first = FONT.split(",")[0].strip("'")
    asked = ["fc-match", "-f", "%{spacing}", first]
    assert subprocess.run(asked, capture_output=True, check=True, text=True).stdout == "100"


def test_names_are_escaped() -> None:
    program = parse('PTX a\n"<b> & c"\n{ x = 0; }\n P0@cta 0,gpu 0 ;\n st.weak x, 1 ;\nexists (x == 1)\n', "a.litmus")
    found = explore(program, load_model("ptx-9.0"), drawn=1)
    (execution,) = found.allowed.values()
    from dataclasses import replace

    ET.fromstring(draw(replace(execution, name='<&"\N{LATIN SMALL LETTER U WITH DIAERESIS}>')))


def test_other_formats_hold_the_same_graph() -> None:
    import io

    import networkx as nx

    execution = next(executions(explored(LITMUS / "bulk" / "bulk-ring-one-slot.litmus")))
    graph = network(execution)
    assert set(graph) == {box.name for box in execution.boxes}
    again = nx.read_graphml(io.BytesIO(graphml(execution).encode()), force_multigraph=True)
    assert set(again) == set(graph)
    assert again.number_of_edges() == graph.number_of_edges()
    text = dot(execution)
    assert text.count("->") == len(execution.edges)
    assert text.count("{") == text.count("}")


def test_a_schedule_is_a_timeline_with_the_accesses_marked() -> None:
    """A finding of a kernel sketch: a lane per role, time downwards, what conflicts marked."""
    from mcheck.engines.protocol.findings_answer import check
    from mcheck.report.picture.timeline import draw_timeline

    program = load(str(LITMUS / "bulk" / "bulk-ring-one-slot-no-fence.litmus"))
    given = check(program, load_model("ptx-9.0"))
    drawn = [(f, draw_timeline(f, program.name, "ptx-9.0")) for f in given.findings]
    assert drawn
    for finding, execution in drawn:
        assert execution is not None, finding.trace
        layout = lay_out(execution)
        rects = texts(layout)
        assert not any(a.overlaps(b) for k, a in enumerate(rects) for b in rects[:k])
        assert [b.row for b in execution.boxes] == list(range(len(execution.boxes)))
        assert sorted(b.line for b in execution.boxes if b.marked) == sorted(
            a.span.line for a in finding.accesses if a.span is not None
        )
        assert "a schedule" in draw(execution)


def test_a_deadlock_of_a_sketch_shows_where_each_role_stands() -> None:
    from mcheck.checking.policy.ask import ask
    from mcheck.checking.policy.question import Completeness, Question
    from mcheck.report.picture.timeline import draw_timeline

    seen = 0
    for source in sorted((LITMUS / "kernels").glob("*.litmus")):
        text = source.read_text()
        if "expect deadlock" not in text:
            continue
        program = load(str(source))
        given = ask(program, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=20))
        for finding in (f for f in given.findings if f.kind == "deadlock"):
            drawn = draw_timeline(finding, program.name, "ptx-9.0")
            if drawn is None:
                continue
            stops = [(drawn.columns[b.column].title, b.line) for b in drawn.boxes if b.kind == "stop"]
            assert stops == [(a.thread, a.span.line) for a in finding.accesses if a.span]
            assert all(b.marked == (b.kind == "stop") for b in drawn.boxes)
            seen += 1
        if seen >= 3:
            break
    assert seen
