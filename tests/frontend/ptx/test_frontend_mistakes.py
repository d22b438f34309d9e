"""Mistakes of a module: several are told at once, with place and hint; what is never executed may be what it likes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcheck.base.errors import InputError
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ptx import check as answer_about
from mcheck.tools.cli.main import cli

TEXT = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u32 n) {
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .shared .align 16 .b8 buf[64];
  ld.param.u32 %r1, [n];
  setp.lt.u32 %p1, %r1, 7;
  @%p1 bra DONE;
  mov.u32 %r2, buf;
  st.shared.u32 [%r2], %r1;
  bar.sync 0;
  ld.shared.u32 %r3, [%r2];
DONE:
  ret;
}
"""


def check(folder: Path, text: str, n: int = 8) -> Result:
    (folder / "k.ptx").write_text(text, encoding="utf-8")
    given = {"entry": "k", "grid": [1, 1, 1], "block": [32, 1, 1], "params": {"n": n}}
    (folder / "k.json").write_text(json.dumps(given), encoding="utf-8")
    return CliRunner().invoke(cli, ["check", str(folder / "k.ptx")], standalone_mode=False)


def changed(*changes: tuple[str, str]) -> str:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def told(text: str) -> list[tuple[int, str | None]]:
    with pytest.raises(InputError) as caught:
        parse_module(text)
    return [(e.span.line if e.span else 0, e.code) for e in caught.value.all_errors]


def test_several_mistakes_are_told_in_the_order_of_the_text() -> None:
    text = changed(
        ("%r1, 7", "%q1, 7"), ("bra DONE", "bra DUNE"), ("%r2, buf", "%r2, bof"), ("[%r2], %r1", "[%r2, %r1"),
        ("ld.shared.u32 %r3, [%r2]", "ld.shared.u32 %q1, [%r2]"),
    )  # fmt: skip
    # what is undeclared is told where it stands first
    assert told(text) == [(9, "PTX030"), (10, "PTX031"), (11, "PTX030"), (12, "PTX010")]


def test_what_follows_from_a_mistake_is_none() -> None:
    assert told(changed((".reg .b32", ".reg .b23"), ("bra DONE", "bra DUNE"))) == [(6, "PTX021"), (10, "PTX031")]
    assert told(changed(("%r1, 7;", "%r1, 7"))) == [(9, "PTX015")]
    assert told(TEXT.replace("}", "").replace("%r1, 7", "%q1, 7")) == [(9, "PTX030"), (16, "PTX008")]


def test_a_misspelt_instruction_is_told_with_place_and_hint(tmp_path: Path) -> None:
    result = check(tmp_path, changed(("setp.lt", "setp.ltt"), ("bar.sync", "bar.snyc"), ("st.shared", "ts.shared")))
    assert result.return_value == 2
    out = result.stderr
    places = [line.rsplit(".ptx:")[1] for line in out.split("\n") if line.startswith("  --> ")]
    assert places == ["9:8", "12:3", "13:7"]
    assert all(f"did you mean '{word}'?" in out for word in (".lt", "st", ".sync"))
    assert "9 |   setp.ltt.u32 %p1, %r1, 7;\n  |        ^^^\n" in out


def test_a_word_of_a_longer_name_is_meant(tmp_path: Path) -> None:
    out = check(tmp_path, changed(("bar.sync 0", "cp.async.bulk.comit_group"))).stderr
    assert "hint: did you mean '.commit_group'?" in out


@pytest.mark.daily(days=3, least=0)
@pytest.mark.parametrize("wrong", ["bar.snyc 0", "foo.b32 %r1"])
def test_what_is_not_executed_is_not_looked_at(wrong: str, tmp_path: Path) -> None:
    assert check(tmp_path, changed(("bar.sync 0", wrong)), n=3).return_value == 0
    unreachable = changed(("  ret;\n", f"  ret;\n  {wrong};\n"), ("bar.sync", "bar.snyc"))
    assert check(tmp_path, unreachable).stderr.count("  --> ") == 1
    assert check(tmp_path, changed(("bar.sync 0", f"@!%p1 bra OVER; {wrong}; OVER: bar.sync 0"))).return_value == 0


def test_what_is_not_modelled_is_no_mistake(tmp_path: Path) -> None:
    result = check(tmp_path, changed(("bar.sync 0", "tex.1d.v4.u32.s32 {%r1, %r1, %r1, %r1}, [buf, {%r1}]")))
    assert result.return_value == 3
    assert "unknown" in result.stdout


def test_what_a_later_ptx_may_have_added_is_not_followed_and_no_mistake(tmp_path: Path) -> None:
    text = changed(("ld.shared.u32 %r3", "ld.shared.novel.u32 %r3"))
    assert check(tmp_path, text).return_value == 2
    found = check(tmp_path, text.replace(".version 8.0", ".version 9.7"))
    assert found.return_value == 3
    assert "'.novel' is not a qualifier of 'ld' (up to PTX 9.5; the module is of 9.7) (line 14)" in found.output


@pytest.mark.parametrize(
    "load", ["ld.global.u32.proxy::readonly %r3, [%rd1]", "ld.proxy::readonly.global.u32 %r3, [%rd1]"]
)
def test_a_load_through_the_readonly_proxy_is_named(tmp_path: Path, load: str) -> None:
    text = re.sub(r"ld\.shared\.u32 %r3, \[[^]]*\]", f".reg .b64 %rd<2>; mov.u64 %rd1, 0; {load}", TEXT)
    assert load in text
    found = check(tmp_path, text.replace(".version 8.0", ".version 9.5"))
    assert found.return_value == 3
    assert f"'{load}' is legal but not modelled" in found.output


def test_names_and_instructions_are_told_together() -> None:
    text = changed(("%r1, 7", "%q1, 7"), ("mov.u32 %r2, buf", "mov.b33 %r2, buf"), ("bra DONE", "bra DUNE"),
                   ("bar.sync", "bar.snyc"))  # fmt: skip
    illegal = "illegal-instruction"
    assert told(text) == [(9, "PTX030"), (10, "PTX031"), (11, illegal), (13, illegal)]


def test_behind_a_branch_nothing_is_looked_at_beside_other_mistakes() -> None:
    wrong = changed(("%r1, 7", "%q1, 7"), ("  ret;\n", "  ret;\n  bar.snyc 0;\n"))
    assert told(wrong) == [(9, "PTX030")]
    assert told(wrong.replace("  bar.snyc", "OTHER: bar.snyc")) == [(9, "PTX030"), (17, "illegal-instruction")]


def test_what_a_later_ptx_may_have_added_is_none_beside_other_mistakes() -> None:
    text = changed(("%r1, 7", "%q1, 7"), ("ld.shared.u32 %r3", "ld.shared.novel.u32 %r3"))
    assert told(text) == [(9, "PTX030"), (14, "illegal-instruction")]
    assert told(text.replace(".version 8.0", ".version 9.7")) == [(9, "PTX030")]


POLL = """.version 8.5
.target sm_90
.address_size 64
.visible .entry poll() {{
  .reg .pred %p<4>; .reg .b32 %r<4>;
  .shared .align 8 .b64 bar;
  mbarrier.init.shared.b64 [bar], 1;
AGAIN:
  mbarrier.test_wait.parity.shared.b64 %p1, [bar], 1;
  {wrong}
  @!%p1 bra AGAIN;
  ld.acquire.cta.shared.b32 %r1, [bar];
  {wrong}
  ret;
}}
"""


@pytest.mark.parametrize(
    "wrong",
    ["setp.eq %p3, %r1, 0;", "setp.eq.b32 %p3, %r1;", "shf.l %r1, %r2, %r3, 1;", "mul24 %r1, %r2, 3;", "cvt %r1, %r2;",
     "setp.eq.and.b32 %p3, %r1, 0;"],
)  # fmt: skip
def test_a_mistake_behind_a_poll_is_told_where_it_is_executed(wrong: str) -> None:
    told = answer_about(POLL.format(wrong=wrong), {"grid": 1, "block": 1})
    assert isinstance(told.problem, InputError), told.reason
    assert wrong.split(maxsplit=1)[0] in str(told.problem)
