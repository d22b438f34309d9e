"""The sketch of a followed cluster: it reads, it has loops and names, and the same is found in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.modules import FOLDER, Case, cases
from mcheck.base.errors import Unsupported
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.checking.run.single import load_model
from mcheck.frontend.litmus import parse
from mcheck.frontend.ptx import launch_reader, reader
from mcheck.simt.sketches.emit import emit_sketch
from mcheck.simt.sketches.formulas import Number, Writer, fit_formula, fit_lanes
from mcheck.simt.trace_extraction import extract_traces
from mcheck.tools.cli.main import cli

SAME = (
    "cuda/barrier_tx", "cuda/barrier_tx no-proxy-fence", "cuda/bulk_to_peer", "cuda/ring_bulk", "cuda/scan",
    "cuda/st_async", "cuda/transpose",
)  # fmt: skip


def emitted(case: Case) -> tuple[str, frozenset[str]]:
    """The sketch of the first way, and the codes that are found in that way."""
    module = reader.parse_module(case.text(), str(case.path))
    way = next(extract_traces(module, launch_reader.build_launch(module, launch_reader.from_object(case.launch()))))
    return emit_sketch(way, {}), codes(ask(way.program, load_model("ptx-9.0"), QUESTION, "protocol").findings)


QUESTION = Question(about=Completeness.FINDINGS)


def codes(findings: object) -> frozenset[str]:
    """Of findings."""
    return frozenset(f.code for f in findings)  # type: ignore[attr-defined]


@pytest.mark.daily
@pytest.mark.parametrize("label", SAME)
def test_same_findings(label: str) -> None:
    """Of modules of the corpus, with and without a bug."""
    text, expected = emitted(next(case for case in cases() if case.label == label))
    found = ask(parse(text, "<sketch>"), load_model("ptx-9.0"), QUESTION, "protocol")
    assert codes(found.findings) == expected
    assert found.verdict == ("finding" if expected else "proved")


def test_a_ring_reads_like_one() -> None:
    """Roles, loops, stages and parities, barriers by their use, lines of the module."""
    text, _ = emitted(next(case for case in cases() if case.label == "cuda/ring_bulk"))
    assert "const STAGES = 4;" in text
    assert "producer@cta 0, warp 0 {" in text
    assert "consumer@cta 0, warp 1..5 {" in text
    assert "  for k in 0..16 {" in text
    assert "[empty[stage(k)]], parity(k + 4);" in text
    assert "[full[stage(k)]], parity(k);" in text
    assert "[memory + stage(k) * 2048], [ring_bulk_param_0 + k * 2048], 2048, [full[stage(k)]];" in text
    assert "// 318" in text


def test_what_a_sketch_cannot_say() -> None:
    """Is named with its line."""
    case = next(case for case in cases() if case.label == "cuda/stolen_tiles")
    module = reader.parse_module(case.text(), str(case.path))
    way = next(extract_traces(module, launch_reader.build_launch(module, launch_reader.from_object(case.launch()))))
    with pytest.raises(Unsupported):
        emit_sketch(way, {})


@pytest.mark.daily(days=3, least=0)
def test_command(tmp_path: Path) -> None:
    """The file is there beside the answer, and can be checked; without one module it is a mistake."""
    path, out = FOLDER / "cuda" / "transpose.ptx", tmp_path / "transpose.litmus"
    asked = ["check", str(path), "--launch", str(path.with_suffix(".json")), "--emit-sketch", str(out)]
    runner = CliRunner()
    assert runner.invoke(cli, asked, standalone_mode=False).return_value == 0
    assert runner.invoke(cli, ["check", str(out)], standalone_mode=False).return_value == 0
    wrong = runner.invoke(cli, ["check", str(out), "--emit-sketch", str(tmp_path / "no.litmus")])
    assert wrong.exit_code == 2
    assert "one PTX module" in wrong.output
    assert not (tmp_path / "no.litmus").exists()


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([3, 3, 3], "3"),
        ([0, 8, 16, 24], "k * 8"),
        ([5, 4, 3], "5 - k"),
        ([0, 16, 32, 0, 16, 32, 0], "(k % 3) * 16"),
        ([32, 0, 16, 32, 0, 16, 32, 0], "((k + 2) % 3) * 16"),
        ([1, 1, 0, 0, 1, 1], "((k + 2) / 2 % 2)"),
        ([0, 1, 0, 1, 0], "(k % 2)"),
        ([0, 1, 10, 11, 20, 21], "(k % 2) + (k / 2) * 10"),
        ([0, 1, 4, 9], None),
    ],
)
def test_formulas(values: list[int], text: str | None) -> None:
    """What is written is what the values are; the number is ``None`` where they follow no pattern."""
    found = fit_formula(values, "k", range(len(values)))
    assert (None if found is None else Writer().text(found)) == text
    if text is not None:
        assert [eval(text.replace("/", "//"), {"k": k}) for k in range(len(values))] == values


@pytest.mark.parametrize(
    "values",
    [
        [256 + 4 * k for k in range(32)],
        [(k % 8) * 128 + (k // 8) * 16 for k in range(32)],
        [1024 + ((k % 8) * 128 + (k // 8) * 16 ^ (k % 8) * 16) for k in range(32)],
        [48 ^ (k % 4) * 16 for k in range(32)],
    ],
)
def test_over_lanes(values: list[int]) -> None:
    """Sums and exclusive ors of the bits of the lane."""
    found: Number | None = fit_lanes(values, range(32))
    assert found is not None
    text = Writer().text(found).replace("/", "//").replace("%laneid", "lane")
    assert [eval(text, {"lane": k}) for k in range(32)] == values
