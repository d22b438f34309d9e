"""Nothing on the screen is false: what was not read has no condition, an instruction no proxy, a range one notation."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mcheck.base.reasons import Cause, Reason, format_reasons, mark_own_limit, timeout_reason, with_total_time
from mcheck.engines.explicit.exploration import _may_be
from mcheck.report.picture.layout import instruction_lines

RANGES = re.compile(r"\[\d+:\d+\]|\.\.\d+\)")

UNSUPPORTED = """\
PTX unsupported
{ .global .u32 x; }
P@cta 0 { st.weak.u32 [x], 1; multimem.st.async.release.sys.global.u32 [x], 1; }
exists (P:r0 == 1)
expect pass
"""
ODD_SIZE = """\
PTX odd-size
{ .global .align 128 .b8 src[1024]; .shared .align 128 .b8 buf[1024]; .shared .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mov.u32 r1, 24;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], r1, [bar];
}
"""
NARROW = """\
PTX narrow
{ .global .u32 data; .global .u32 flag; }
producer@cta 0 {
  st.global.u32 [data], 1;
  fence.acq_rel.cta;
  st.relaxed.gpu.global.u32 [flag], 1;
}
consumer@cta 1 {
  await ld.relaxed.gpu.global.u32 r0, [flag] == 1;
  fence.acq_rel.cta;
  ld.global.u32 r1, [data];
}
"""
FENCED = """\
PTX fenced
{ x=0; y=0; }
 P0@cta 0,gpu 0         | P1@cta 1,gpu 0         ;
 st.relaxed.gpu x, 0x11 | st.relaxed.gpu y, 0x11 ;
 fence.sc.gpu           | fence.sc.gpu           ;
 ld.relaxed.gpu r0, y   | ld.relaxed.gpu r0, x   ;
exists (0:r0 == 0x0 /\\ 1:r0 == 0)
"""


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / f"{text.split()[1]}.litmus"
        path.write_text(text)
        return path

    return write


def test_of_what_could_not_be_read_only_the_reason_is_told(mcheck: Callable, written: Callable) -> None:
    path = written(UNSUPPORTED)
    for command in ("run", "check", "outcomes"):
        done = mcheck(command, path)
        said = done.out + done.err
        assert done.status == 3
        assert said.count("not modelled") == 1
        assert f"{path}:3:31" in said, "the place of the instruction"
        for false in ("no condition", "without an expectation", "0 states", "0 executions", "engine"):
            assert false not in said, command


def test_an_unsupported_instruction_is_no_error_of_a_comparison(mcheck: Callable, written: Callable) -> None:
    done = mcheck("compare", "ptx-9.0", "sc", written(UNSUPPORTED))
    assert done.status == 3
    assert "0 differ, 1 unknown" in done.out


def test_a_command_that_is_misspelt_is_guessed(mcheck: Callable) -> None:
    assert "No such command 'outcome'. Did you mean 'outcomes'?" in mcheck("outcome", "x").err
    assert mcheck("zzz").err.rstrip().endswith("No such command 'zzz'.")


def test_an_error_is_told_once(mcheck: Callable, written: Callable) -> None:
    path = written("PTX wrong\n{ x=0; }\n P0@cta 0,gpu 0 ;\n st.weak.gpu x, 1 ;\n")
    for command in ("run", "check", "outcomes"):
        done = mcheck(command, path)
        assert (done.out + done.err).count("weak") == 2, "the message, and the line that it shows"


@pytest.mark.parametrize("command", ["run", "check", "outcomes", "exec"])
def test_an_instruction_that_is_misused_is_no_access(mcheck: Callable, written: Callable, command: str) -> None:
    done = mcheck(command, written(ODD_SIZE))
    assert "error[UB101]" in done.out
    assert "generic" not in done.out
    assert "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], r1, [bar]" in done.out


@pytest.mark.parametrize("command", ["run", "check", "outcomes"])
def test_findings_have_their_line_and_one_notation_of_ranges(mcheck: Callable, written: Callable, command: str) -> None:
    done = mcheck(command, written(NARROW))
    assert "4 |   st.global.u32 [data], 1;" in done.out
    assert "data[bytes 0..4]" in done.out
    assert not RANGES.search(done.out)


def test_steps_and_pictures_write_ranges_as_findings_do(mcheck: Callable, written: Callable, tmp_path: Path) -> None:
    body = "st.weak.shared.u16 [x + 2], 1; ld.shared.u64 r0, [x]; st.weak.shared.u64 [x + 8], r0;"
    part = written(f"PTX part\n{{ .shared .align 8 .u32 x[4]; }}\nP@cta 0 {{ {body} }}\n")
    picture = tmp_path / "x.svg"
    assert mcheck("outcomes", part, "--graph", 1, "-o", picture).status == 0
    for text in (mcheck("outcomes", part).out, picture.read_text()):
        assert re.search(r"x(@0)?\[bytes 2\.\.4\]", text)
        assert re.search(r"x(@0)?\[bytes 8\.\.", text), "no other notation for whole elements"
        assert not RANGES.search(text)


def test_a_scope_that_is_too_narrow_is_named(mcheck: Callable, written: Callable) -> None:
    done = mcheck("run", written(NARROW), "--engine", "explicit")
    assert "handed over with too narrow a scope: line 5 and line 10 have scope .cta, but" in done.out


def test_states_are_written_as_the_question_is(mcheck: Callable, written: Callable) -> None:
    path = written(FENCED)
    assert "0:r0=0x11; 1:r0=17;" in mcheck("run", path).out
    assert '{"P0:r0": 17, "P1:r0": 17}' in mcheck("run", path, "--format", "json").out, "the interface has one notation"


def test_words_and_picture_name_an_edge_alike(mcheck: Callable, written: Callable, tmp_path: Path) -> None:
    picture = tmp_path / "x.svg"
    assert mcheck("outcomes", written(FENCED), "--graph", 1, "--forbidden", "-o", picture).status == 0
    text = re.sub(r'<style>.*?</style>|class="[^"]*"|class=\"[^\"]*\"', "", picture.read_text(), flags=re.DOTALL)
    assert "-sc→" in text
    assert "sync_fence" not in text


def test_no_instruction_is_cut() -> None:
    text = (
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [buf], [map, {0, 0}], [full]"
    )
    lines = instruction_lines(text, 44)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(len(line) <= 44 for line in lines)


def test_unknown_contents_are_no_state_of_their_own() -> None:
    known = {(("r0", 1), ("x", 2))}
    assert _may_be((("r0", "unknown"), ("x", 2)), known)
    assert not _may_be((("r0", "unknown"), ("x", 3)), known)
    assert not _may_be((("r0", 1), ("x", 3)), known)


@pytest.mark.parametrize(
    ("first", "language"), [("X86 SB", "x86"), ("AArch64 MP+dmb", "Armv8"), ("C SB", "C"), ("RISCV LB", "RISC-V")]
)
def test_a_test_of_another_language_is_told_by_name(
    mcheck: Callable, tmp_path: Path, first: str, language: str
) -> None:
    path = tmp_path / "other.litmus"
    path.write_text(f'{first}\n"comment"\n{{ x=0; }}\n P0 ;\n NOP ;\nexists (x=1)\n')
    done = mcheck("run", path)
    assert done.status == 2
    assert f"this is a litmus test for {language}, not for PTX" in done.err


@pytest.mark.parametrize("command", [("run", "--engine", "explicit"), ("check", "--engine", "explicit")])
def test_the_limit_that_was_given_is_named(command: tuple[str, ...], mcheck: Callable, written: Callable) -> None:
    """The engine had what reading left of it."""
    rows = (" | ".join(f"atom.relaxed.gpu.add r{k}, x{k}, 1" for _ in range(8)) + " ;" for k in range(8))
    threads = " | ".join(f"P{k}@cta {k},gpu 0" for k in range(8)) + " ;"
    text = "\n".join(["PTX hard", "{ x0=0; }", threads, *rows, "exists (x0 == 1)", ""])
    done = mcheck(*command, written(text), "--timeout", 0.8)
    assert (done.status, re.findall("within .*", done.out)) == (3, ["within 0.8 s"])


def test_a_reason_within_a_reason_names_it_too() -> None:
    many = "N is any number: nothing was found with N = 0 to 2; with N = 3"
    said = (Reason(Cause.NUMBERS, many, because=(timeout_reason(1.98883),)),)
    assert format_reasons(with_total_time(said, 2.0)) == f"{many}: no answer within 2 s"
    assert with_total_time((), 2.0) == ()
    assert format_reasons(with_total_time((timeout_reason(4.0),), None)) == "no answer within 4 s"
    own = mark_own_limit((timeout_reason(4.0),))
    assert format_reasons(with_total_time(own, 60.0)) == "no answer within 4 s", "an engine's own time"
