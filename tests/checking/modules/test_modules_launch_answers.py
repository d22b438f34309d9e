"""The joined answer about several launches: its parts, its report, what it names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcheck.answers.result import Answer
from mcheck.base.budget import use_clock
from mcheck.checking.check.modules import check_text
from mcheck.checking.modules.launches import launch_sequence
from mcheck.checking.run.case import Options, Settings
from mcheck.frontend.ptx.launch_reader import from_object
from mcheck.ptx import check
from mcheck.tools.cli.main import main
from tests.checking.modules.stream_kernels import (
    HEAD,
    MAKE,
    READ,
    TRIGGER,
    WAIT,
    WRITE,
    checked,
    kernel,
    launch,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module and its launches, which is the working directory."""
    (tmp_path / "k.ptx").write_text(HEAD + MAKE + kernel("use", READ, WAIT))
    launches = [launch("make", "a", programmatic=False), launch("use", "a")]
    (tmp_path / "k.json").write_text(json.dumps({"launches": launches, "buffers": {"a": {"bytes": 512}}}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_the_command_and_its_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "k.ptx", "--format", "json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["results"]
    assert (found["name"], found["verdict"], found["executions"]) == ("make, use", "finding", 2)
    assert found["covers"] == {"clusters": 8, "of": 8, "together": 1}
    grid = {"clusters": 4, "of": 4, "together": 1}
    assert found["launches"] == [
        {"entry": "make", "gpu": 0, "verdict": "proved", "covers": grid},
        {"entry": "use", "gpu": 0, "verdict": "proved", "covers": grid},
    ]
    (finding,) = found["findings"]
    text = (HEAD + MAKE + kernel("use", READ, WAIT)).splitlines()
    assert [text[a["line"] - 1].strip() for a in finding["accesses"]] == [READ, WRITE]


@pytest.mark.usefixtures("folder")
def test_what_wants_one_launch(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "k.ptx", "--launch", "k.json", "--grid", "4"]) == 2
    assert "--grid would be of one launch, and the file has 2" in capsys.readouterr().err
    assert main(["check", "k.ptx", "--emit-sketch", "k.litmus"]) == 2
    assert "the file has 2 launches, one can be taken here" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_kept_answers_have_all_parts(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for _ in range(2):
        main(["check", "k.ptx", "--format", "json", "--cache", "kept"])
        said.append({**json.loads(capsys.readouterr().out)["results"][0], "seconds": 0})
    assert said[0] == said[1]


def test_from_python(folder: Path) -> None:
    given = json.loads((folder / "k.json").read_text())
    assert [f.code for f in check(folder / "k.ptx", given).findings] == ["RACE012"]


def test_the_parts_of_the_joined_answer() -> None:
    module = MAKE + kernel("use", WAIT, READ)
    found = checked(module, launch("make", "a", programmatic=False), launch("use", "a", "b", gpu=0))
    assert found.name == "make, use"
    assert found.assumptions[0].startswith("launch 1: entry make, grid 4, 1, 1")
    assert found.assumptions[1].endswith("programmatic")
    assert len(found.assumptions) == len(set(found.assumptions))


def test_launches_that_are_alike_are_listed_once() -> None:
    found = checked(MAKE, *[launch("make", "a", programmatic=False)] * 12)
    (said,) = [text for text in found.assumptions if "entry make" in text]
    assert said.startswith("launches 1, 2, 3, 4, 5, 6, 7, 8 and 4 more: entry make, grid 4, 1, 1")


def test_a_finding_names_its_launch() -> None:
    racy = kernel("racy", "st.global.u32 [%rd1], %r1;", width=64)
    found = checked(
        MAKE + racy, launch("make", "a", programmatic=False), *[launch("racy", "b", programmatic=False)] * 2
    )
    assert found.verdict == "finding"
    assert found.findings[0].message.startswith("launches 2, 3 (racy): ")


def test_grids_of_several_classes_are_compared_whole() -> None:
    """The last CTA alone writes what the next launch reads early."""
    last = kernel(
        "make", TRIGGER, "setp.ne.u32 %p1, %r2, 3;", "@%p1 bra END;", "st.global.u32 [%rd3+512], %r3;", "END:"
    )
    found = checked(
        last + kernel("use", "ld.global.u32 %r4, [%rd3+512];", WAIT), launch("make", "a"), launch("use", "a")
    )
    assert "RACE012" in {f.code for f in found.findings}
    assert "CTA (3, 0, 0)" in next(f for f in found.findings if f.code == "RACE012").accesses[1].thread


def test_a_launch_with_any_number_is_not_compared() -> None:
    loop = kernel("make", TRIGGER, "ld.param.u64 %rd6, [y];", "LOOP:", WRITE, "sub.u64 %rd6, %rd6, 1;",
                  "setp.gt.s64 %p1, %rd6, 0;", "@%p1 bra LOOP;")  # fmt: skip
    first = {**launch("make", "a", programmatic=False), "params": {"x": {"buffer": "a"}, "y": "any"}}
    found = checked(loop + kernel("use", READ, WAIT), first, launch("use", "a"))
    assert found.verdict in ("bounded", "unknown")
    assert "not all that launch 1 (make) accesses was compared with other launches: y may be any number" in str(
        found.reason
    )


def test_launches_that_are_not_reached_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is over when the first one is answered."""
    now, answered = [0.0], launch_sequence.answer_for_every

    def late(*asked: Any) -> Answer:
        now[0] += 1000.0
        return answered(*asked)

    monkeypatch.setattr(launch_sequence, "answer_for_every", late)
    launches = [launch("make", "a", programmatic=False), launch("use", "a")]
    given = from_object({"launches": launches, "buffers": {"a": {"bytes": 4096}}})
    with use_clock(lambda: now[0]):
        found = check_text(HEAD + MAKE + kernel("use", WAIT, READ), "<ptx>", given, Settings(timeout=60), Options())
    assert (found.verdict, found.findings, found.cut) == ("unknown", (), True)
    assert found.covers is not None
    assert (len(found.launches), found.covers.clusters, found.covers.total) == (1, 4, 8)


FIRST = kernel("first", "st.global.u32 [%rd3], 1;")
SECOND = kernel(
    "second",
    "ld.global.u32 %r4, [%rd3];",
    "setp.eq.u32 %p1, %r4, 77;",
    "@%p1 ld.global.u32 %r5, [%rd3+1048576];",
)


def test_contents_that_an_earlier_launch_leaves_are_not_any_contents() -> None:
    launches = [launch("first", "a", programmatic=False), launch("second", "a", programmatic=False)]
    found = checked(HEAD + FIRST + SECOND, *launches)
    assert (found.verdict, found.findings) == ("unknown", ())
    assert "what earlier launches leave in memory decides whether this is UB103" in str(found.reason)
    alone = checked(HEAD + FIRST + SECOND, launches[1])
    assert [f.code for f in alone.findings] == ["UB103"], "any contents"
    always = SECOND.replace("@%p1 ", "")
    found = checked(HEAD + FIRST + always, *launches)
    assert [f.code for f in found.findings] == ["UB103"], "whatever is in memory"


LOCKS = kernel(
    "locks",
    "mov.u32 %r1, %tid.x;",
    "and.b32 %r2, %r1, 31;",
    "setp.ne.u32 %p1, %r2, 0;",
    "@%p1 ret;",
    "shr.u32 %r2, %r1, 3;",
    "cvt.u64.u32 %rd6, %r2;",
    "add.u64 %rd6, %rd6, %rd1;",
    "atom.acq_rel.gpu.global.cas.b32 %r4, [%rd6], WANTED, 9;",
    "setp.eq.u32 %p1, %r4, WANTED;",
    "@%p1 st.global.u32 [%rd1+1024], %r1;",
    width=64,
)


@pytest.mark.parametrize("wanted", [0, 1, 3])
def test_two_locks_that_a_file_gives_as_free_are_not_both_free_after_a_launch(wanted: int) -> None:
    """The launch before may leave any of them taken, whatever it is that a lock holds when it is free."""
    free = wanted.to_bytes(4, "little").hex()
    launches = [launch("first", "a", programmatic=False), launch("locks", "a", programmatic=False, grid=1)]
    given = from_object({"launches": launches, "buffers": {"a": {"bytes": 4096, "init": {"hex": free * 2}}}})
    text = HEAD + FIRST + LOCKS.replace("WANTED", str(wanted))
    found = check_text(text, "<ptx>", given, Settings(timeout=60), Options())
    assert (found.verdict, found.findings) == ("unknown", ())
    assert "what earlier launches leave in memory decides whether this is RACE001" in str(found.reason)
