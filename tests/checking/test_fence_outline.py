"""The outline of a program in block form, edits of its text, and their costs."""

from pathlib import Path

import pytest

from mcheck.base.errors import InputError
from mcheck.checking.fences.costs import read_costs
from mcheck.checking.fences.edits import apply_changes, changed_lines, insert, remove, replace_statement
from mcheck.checking.fences.expectations import state_clean
from mcheck.checking.fences.outline import Outline, evaluate, outline

TEXT = """\
PTX t
const S = 2, W = S + 1;
{ .global .u32 x[4] = {1, 2, 3, 4}; .shared .b64 b; }
a@cta 0, warp 0..4 {
  for k in 0..S {
    @p bar.sync 0; // } not here
    if (%laneid == 0) { st.shared.v2.u32 [x], {1, 2}; }
  }
}
c@cta 0, warp 1..1+W, lane 0 { bar.sync 0; }
"""


def read(text: str = TEXT) -> Outline:
    found = outline(text)
    assert found is not None
    return found


def test_statements_have_their_lines_roles_and_blocks() -> None:
    program = read()
    assert [(s.line, s.text, s.role, len(s.blocks)) for s in program.statements] == [
        (6, "@p bar.sync 0;", 0, 1),
        (7, "st.shared.v2.u32 [x], {1, 2};", 0, 2),
        (10, "bar.sync 0;", 1, 0),
    ]
    assert program.statements[0].blocks[0].variable == "k"
    assert program.roles[1].ranges == {"cta": "0", "warp": "1..1+W", "lane": "0"}
    assert program.constants == {"S": 2, "W": 3}


def test_what_is_not_in_blocks_has_no_outline() -> None:
    assert outline("PTX c\n{ x = 0; }\n P0@cta 0,gpu 0 ;\n st.relaxed.gpu x, 1 ;\n") is None
    assert outline("") is None
    assert outline("PTX c\n{ }\nP@cta 0 { bar.sync 0;") is None or not read("PTX c\n{ }\nP@cta 0 { }").statements


def test_insertions_stand_in_lines_of_their_own_unless_the_line_has_more() -> None:
    program = read()
    for gap, line in ((program.gaps[1], "    nop;"), (program.gaps[3], None)):
        changed = apply_changes(program.text, [insert(program, gap, "nop;")])
        if line is None:
            assert "{ nop; st.shared" in changed
        else:
            assert changed.splitlines()[gap.line - 1] == line


def test_removals_and_replacements_keep_the_rest() -> None:
    program = read()
    barrier = program.statements[0]
    assert "@p nop; // } not here" in apply_changes(TEXT, [replace_statement(barrier, "nop;")])
    removed = apply_changes(TEXT, [remove(program, barrier.start, barrier.end)])
    assert "    // } not here\n" in removed
    last = program.statements[-1]
    assert "lane 0 { }" in apply_changes(TEXT, [remove(program, last.start, last.end)])


def test_changed_lines_are_those_of_the_text_before() -> None:
    changes = list(changed_lines("a\nb\nc\n", "a\n  x\nb\nd\n"))
    assert [(each.line, each.old, each.new) for each in changes] == [(2, None, "x"), (3, "c", "d")]


def test_numbers_and_names_have_values() -> None:
    assert evaluate("2*(N - 1) / 3", {"N": 7}) == 4
    assert [evaluate(text, {}) for text in ("N", "1 +", "1/0", "", "(1")] == [None] * 5


def test_the_longest_name_that_an_instruction_begins_with_counts() -> None:
    costs = read_costs()
    assert costs.of("fence.proxy.async.shared::cta;") < costs.of("fence.proxy.async;")
    assert costs.of("fence.proxy.async.shared::cta;") < costs.of("fence.proxy.async;")
    assert costs.of("mbarrier.arrive.shared::cta.b64 _, [b];") < costs.of("mbarrier.arrive.release.cluster.b64 _, [b];")
    assert costs.of("ld.shared.u32 r0, [x];") == 0
    assert costs.of("fence.proxy.tensormap::generic.release.gpu;") > costs.of("fence.proxy.async;")


@pytest.mark.parametrize("text", ["[cycles\n", "[cycles]\n'bar.sync' = 'much'\n", "[cycles]\n'bar.sync' = -1\n"])
def test_wrong_costs_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "costs.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"cost"):
        read_costs(str(path))


def test_a_repaired_program_expects_nothing() -> None:
    assert state_clean("x;\nexpect race\nexpect fail\n") == "x;\nexpect clean\nexpect fail\n"
