"""``python -m benchmarks.peers``: what the other tools are asked, how their answers are read, compared, summed up."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import dartagnan, herd7, sentryward
from benchmarks.peers import (
    Absent,
    Cost,
    Row,
    as_json,
    compare_answers,
    is_wrong,
    line,
    main,
    notes,
    read_verdicts,
    sum_up,
    together,
)

TABLE = """PTX MP-2
{ }
 P0@cta 0,gpu 0        | P1@cta 1,gpu 0        | P2@cta 0,gpu 1 ;
 st.weak d, 1          | LC1:                  | fence.sc.sys   ;
 st.release.gpu f, 1   | ld.acquire.gpu r0, f  |                ;
                       | bne r0, 1, LC1        |                ;
                       | ld.weak r1, d         |                ;
exists (P1:r0 == 1 /\\ (P1:r1 != 1 \\/ d == 2))
"""


def test_a_table_is_rewritten_for_herd() -> None:
    assert herd7.to_lisa(TABLE).splitlines() == [
        "LISA MP-2",
        "{ }",
        "P0 | P1 | P2 ;",
        "w[weak,cta] d 1 | LC1: r[acquire,gpu] r0 f | f[sc,sys] ;",
        "w[release,gpu] f 1 | mov r99 (neq r0 1) |  ;",
        " | b[] r99 LC1 |  ;",
        " | r[weak,cta] r1 d |  ;",
        "scopes: (sys (gpu (cta P0) (cta P1)) (gpu (cta P2)))",
        r"exists (1:r0 = 1 /\ (~(1:r1 = 1) \/ d = 2))",
    ]


@pytest.mark.parametrize("unknown", ["atom.relaxed.gpu.add r0, d, 1", "bar.cta.sync 1", "fence.proxy.alias.sys"])
def test_what_herd_is_not_told_is_refused(unknown: str) -> None:
    with pytest.raises(ValueError, match=unknown.replace(".", r"\.")):
        herd7.to_lisa(TABLE.replace("fence.sc.sys  ", unknown))


HERD = """Test MP-2 Allowed
States 2
1:r0=0; [d]=1;
1:r0=1; [d]=-1;
{judged}
Witnesses
Positive: 1 Negative: 1
Observation MP-2 {observed} 1 1
"""


@pytest.mark.parametrize(
    ("judged", "observed", "verdict"), [("Ok", "Sometimes", "pass"), ("Ok", "Always", "pass"), ("No", "Never", "fail")]
)
def test_herds_answer_has_the_names_of_mcheck(judged: str, observed: str, verdict: str) -> None:
    states = {frozenset({("P1:r0", 0), ("d", 1)}), frozenset({("P1:r0", 1), ("d", -1)})}
    assert herd7.read_answer(HERD.format(judged=judged, observed=observed)) == (verdict, states)


def test_an_error_of_herd_is_no_answer() -> None:
    assert herd7.read_answer("Warning: File x: unexpected\n") == ("", frozenset())


DARTAGNAN = """\
================ Configuration ==================
cat = ptx-v7.5.cat
=================================================

Test: litmus/PTX/a.litmus
Filter: true
Result: FAIL
Reason: Program specification violation found
Condition: exists (0:r1 == 1)
Time: 0.070 secs

Test: litmus/PTX/b.litmus
Result: PASS
Time: 0.031 secs

Test: litmus/PTX/c.litmus
Result: ERROR
Details:
\tno such instruction
"""


def test_dartagnans_verdicts_are_read() -> None:
    assert dartagnan.read_results(DARTAGNAN) == {
        "litmus/PTX/a.litmus": "fail",
        "litmus/PTX/b.litmus": "pass",
        "litmus/PTX/c.litmus": "error",
    }


def test_mchecks_verdicts_are_read() -> None:
    output = "ok       pass /x/a b.litmus\nmismatch fail /x/c.litmus (DEAD002 found)\n\n2 tests: 1 ok, 1 mismatch\n"
    assert read_verdicts(output) == {"/x/a b.litmus": "pass", "/x/c.litmus": "fail"}


def test_a_table_of_dartagnan_is_written_for_mcheck(tmp_path: Path) -> None:
    table = dartagnan.TABLES[0]
    resources = tmp_path / dartagnan.RESOURCES
    resources.mkdir(parents=True)
    (resources / table.file).write_text("a.litmus,1\nb.litmus,0\n\n", encoding="utf-8")
    assert dartagnan.rows(tmp_path, table) == {"a.litmus": "pass", "b.litmus": "fail"}
    written = dartagnan.write_table(tmp_path, table, tmp_path)
    assert written.name == "ptx-6.0-spec.csv"
    assert written.read_text(encoding="utf-8") == f"{tmp_path}/a.litmus,1\n{tmp_path}/b.litmus,0\n"


def test_a_checkout_that_is_not_built_is_not_there(tmp_path: Path) -> None:
    assert "mvn install" in (dartagnan.missing(tmp_path) or "")
    (tmp_path / dartagnan.JAR).parent.mkdir(parents=True)
    (tmp_path / dartagnan.JAR).touch()
    assert dartagnan.missing(tmp_path) is None


def test_verdicts_are_alike_or_different_or_left_out() -> None:
    theirs = {"a": "pass", "b": "fail", "c": "unknown", "d": "pass"}
    ours = {"a": "pass", "b": "pass", "c": "pass", "d": "unknown", "e": "fail"}
    assert compare_answers(theirs, ours) == (
        1,
        ("b: fail, mcheck pass",),
        Counter({"the peer: unknown": 1, "mcheck: unknown": 1, "the peer: no answer": 1}),
    )


def row(theirs: float, ours: float, **more: object) -> Row:
    return Row(peer="herd7", what="SB 2", theirs=Cost(theirs, 2 * theirs), ours=Cost(ours, 2 * ours), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "missed"),
    [
        (row(0.1, 0.4, least=0.2), False),
        (row(0.1, 0.6, least=0.2), True),
        (row(1.0, 0.9, least=1.0), False),
        (row(1.0, 1.1, least=1.0), True),
        (row(1.0, 1.1, least=1.0, stopped=True), False),
        (row(1.0, 9.0), False),
    ],
)
def test_a_mark_is_missed_by_the_seconds_of_the_processor(given: Row, missed: bool) -> None:
    assert given.missed == missed
    assert is_wrong(given) == missed
    assert ("MISSED" in line(given)) == missed


def test_a_different_verdict_is_wrong_but_where_the_peer_has_another_model() -> None:
    other = Row(peer="SentryWard", what="launch, correct", different=("a: race",))
    assert is_wrong(row(1.0, 1.0, different=("a: race",)))
    assert not is_wrong(other)
    assert not is_wrong(Absent("SPIN", "no spin"))


def test_a_peer_that_was_stopped_counts_in_no_sum() -> None:
    rows = [row(1.0, 0.5, alike=1), row(60.0, 0.5, stopped=True, left_out={"not done in 60 s": 1})]
    summed = together(rows, "together", 3.0)
    assert (summed.alike, summed.theirs, summed.ours) == (1, Cost(1.0, 2.0), Cost(0.5, 1.0))
    assert summed.left_out == {"not done in 60 s": 1}
    assert summed.missed
    assert ">60.00" in line(rows[1])
    assert ">120.00" in line(rows[1])


def test_what_is_below_the_table_names_reasons_differences_and_each_command_once() -> None:
    rows = [
        row(1.0, 0.5, left_out={"not done in 60 s": 2}, command="herd7 TEST"),
        row(1.0, 0.5, different=("SB 2: fail, mcheck pass",), command="herd7 TEST"),
        Absent("SPIN", "no spin"),
    ]
    assert list(notes(rows)) == [
        "left out: herd7, SB 2: 2 (not done in 60 s)",
        "differ: herd7, SB 2: SB 2: fail, mcheck pass",
        "herd7: herd7 TEST",
    ]


def test_the_table_for_programs_has_the_reasons() -> None:
    told = json.loads(as_json([row(1.0, 0.5, left_out=Counter({"not done in 60 s": 2})), Absent("SPIN", "no spin")]))
    assert told[0]["left_out"] == {"not done in 60 s": 2}
    assert told[0]["theirs"] == {"processor": 1.0, "wall": 2.0}
    assert told[1] == {"peer": "SPIN", "why": "no spin"}


def kernel(verdict: str) -> sentryward.Row:
    return sentryward.Row(
        corpus="launch", label="k", module="", launch="{}", bug=verdict == "finding", verdict=verdict
    )  # fmt: skip


def test_kernels_are_summed_up_with_who_is_right() -> None:
    right, wrong = sentryward.Ran("proved", "", 1.0, 2.0), sentryward.Ran("finding", "potential_race", 0.25, 0.5)
    none = sentryward.Ran("unknown", "unsupported: why", 9.0, 9.0)
    said = [
        (kernel("proved"), {"mcheck": right, "SentryWard": right}),
        (kernel("proved"), {"mcheck": right, "SentryWard": wrong}),
        (kernel("proved"), {"mcheck": right, "SentryWard": none}),
        (kernel("proved"), {"mcheck": none, "SentryWard": right}),
        (kernel("proved"), "several launches"),
    ]
    summed = sum_up("launch, correct", iter(said))
    assert summed.alike == 1
    assert summed.different == ("k: potential_race, mcheck proved; right: mcheck",)
    assert summed.left_out == {
        "SentryWard: unsupported: why": 1,
        "mcheck: unknown": 1,
        "SentryWard cannot be told: several launches": 1,
    }
    assert (summed.theirs, summed.ours) == (Cost(1.25, 2.5), Cost(2.0, 4.0))


def test_a_peer_that_is_not_there_has_a_row_that_says_how_to_get_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--herd7", "no-herd7", "--spin", "no-spin", "--sentryward", "no-python"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.startswith("peer")
    assert [(each.split()[0], "not here:" in each) for each in lines] == [
        ("Dartagnan", True),
        ("herd7", True),
        ("SPIN", True),
        ("SentryWard", True),
    ]


def test_a_name_that_no_peer_has_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--only", "cbmc"])
    assert "no such peer: cbmc" in capsys.readouterr().err
