"""What the language means: precedence, names, functions, includes, folding, shipped models."""

from pathlib import Path

import pytest

from mcheck.cat import full_text, load_model, model_names, models_directory, parse_model
from mcheck.cat.ast import Base, Check, Empty, Kind, Let, LetRec, Model, Node, Op1, Op2, Var
from mcheck.cat.names import BASE
from tests.cat.pretty import show, show_model, show_statement


def model(text: str) -> Model:
    return parse_model(f'"test"\n{text}', "test.cat")


def body(expression: str) -> Node:
    """The checked tree of ``expression``, parsed where it is tested for emptiness."""
    (check,) = (statement for statement in model(f"empty {expression} as E").statements if isinstance(statement, Check))
    return check.body


PRECEDENCE = [
    # herd's levels: application, ^-1, + * ? and product, ~, &, \, ;, |
    ("po | rf; co", "po | (rf; co)"),
    ("po; rf \\ co", "po; (rf \\ co)"),
    ("po \\ rf & co", "po \\ (rf & co)"),
    ("po \\ rf \\ co", "(po \\ rf) \\ co"),
    ("po & rf & co", "po & (rf & co)"),
    ("po; rf; co", "po; (rf; co)"),
    ("po | rf | co", "po | (rf | co)"),
    ("~po & rf", "(~po) & rf"),
    ("~po+", "~(po+)"),
    ("~po^-1", "~(po^-1)"),
    ("W * R & po", "(W * R) & po"),
    ("W * R; po", "(W * R); po"),
    ("W * R+", "(W * R)+"),
    ("W * range(po)", "W * (range(po))"),
    ("po*; rf", "(po*); rf"),
    ("po* | rf", "(po*) | rf"),
    ("rf^-1?", "(rf^-1)?"),
    ("rf+^-1", "(rf+)^-1"),
    ("rf^+", "rf+"),
    ("domain po | W", "(domain(po)) | W"),
    ("fencerel F; rf", "(fencerel(F)); rf"),
    ("[W]; po", "([W]); po"),
    ("let a = po; rf in a | a^-1", "(po; rf) | (po; rf)^-1"),
]


@pytest.mark.parametrize(("loose", "explicit"), PRECEDENCE)
def test_precedence(loose: str, explicit: str) -> None:
    assert body(loose) == body(explicit)


def test_a_star_before_a_negated_test_is_a_closure() -> None:
    statements = model("let a = po*\n~empty a as A\n").statements
    assert isinstance(statements[0], Let)
    assert isinstance(statements[0].body, Op1)
    assert isinstance(statements[1], Check)
    assert statements[1].negated


FOLDING = [
    ("po | 0", "po"),
    ("0 | po", "po"),
    ("po & 0", "0"),
    ("po \\ 0", "po"),
    ("0 \\ po", "0"),
    ("po; 0", "0"),
    ("po \\ po", "0"),
    ("po & po", "po"),
    ("po | po", "po"),
    ("[0]; po", "0"),
    ("rf^-1^-1", "rf"),
    ("~~po", "po"),
    ("0*", "id"),
    ("0?", "id"),
    ("0+ | po", "po"),
    ("po+*", "po*"),
    ("po+?", "po*"),
    ("po?+", "po*"),
    ("[_]; po", "po"),
    ("po; id", "po"),
    ("po & (_ * _)", "po"),
    ("[W]; [RLX]", "[W & RLX]"),
    ("[W]^-1", "[W]"),
    ("(W * R)^-1", "R * W"),
    ("domain([W])", "W"),
    ("range(rf^-1)", "domain(rf)"),
    ("domain(po+)", "domain(po)"),
    ("range(po?)", "_"),
    ("(_ * _) \\ po", "~po"),
    ("W & _", "W"),
    ("W | _", "_"),
    ("lxsx | amo", "rmw"),
]


@pytest.mark.parametrize(("long", "short"), FOLDING)
def test_constants_fold(long: str, short: str) -> None:
    assert body(long) == body(short)
    assert show(body(long)) == short


def test_zero_is_of_either_kind() -> None:
    text = "let none = 0\nlet a = none | W\nlet b = none | po\nlet c(x) = x | none\nlet d = c(W)\nlet all = ~none & W"
    statements = model(text).statements
    kinds = {let.var.name: let.body for let in statements if isinstance(let, Let)}
    assert kinds["a"] == Base("W", Kind.SET)
    assert kinds["b"] == Base("po", Kind.REL)
    assert kinds["d"] == Base("W", Kind.SET)
    assert kinds["all"] == Base("W", Kind.SET)
    assert body("0") == Empty(Kind.REL)


def test_shadowing_follows_the_order_of_the_text() -> None:
    first, second, third, check = model("let co = co+\nlet x = co; rf\nlet co = co | rf\nacyclic co as A").statements
    assert isinstance(first, Let)
    assert isinstance(second, Let)
    assert isinstance(third, Let)
    assert isinstance(check, Check)
    assert first.body == Op1("+", Base("co", Kind.REL), Kind.REL)
    assert isinstance(second.body, Op2)
    assert second.body.left == first.var
    assert isinstance(third.body, Op2)
    assert third.body.left == first.var
    assert check.body == third.var


def test_functions_keep_the_names_of_their_definition() -> None:
    text = "let base = po\nlet f(x) = base; x\nlet base = rf\nlet g(base) = f(base)\nlet r = g(co)"
    let = model(text).statements[-1]
    assert isinstance(let, Let)
    assert show(let.body) == "po; co"


def test_an_inlined_definition_keeps_its_own_variables_apart() -> None:
    text = "procedure p(x) =\n  let y = x; x\n  acyclic y as A\nend\nlet y = rf\ncall p(y)\ncall p(po) as B\n"
    text += "acyclic y as C"
    statements = model(text).statements
    checks = [statement for statement in statements if isinstance(statement, Check)]
    assert [check.name for check in checks] == ["A", "B", "C"]
    bodies = {let.var.uid: show(let.body) for let in statements if isinstance(let, Let)}
    named = [bodies[check.body.uid] if isinstance(check.body, Var) else show(check.body) for check in checks]
    assert named == ["rf; rf", "po; po", "rf"]


def test_recursion_is_kept_only_where_there_is_some() -> None:
    statements = model(
        "let rec a = po | (a; b) and b = rf\nlet rec c = po | rf\nlet rec s = W | range([s]; po)"
    ).statements
    assert [type(statement) for statement in statements] == [LetRec, Let, LetRec]
    group = statements[2]
    assert isinstance(group, LetRec)
    assert group.bindings[0].var.kind is Kind.SET


def test_double_negation_is_monotone() -> None:
    (statement,) = model("let rec a = po | ~(rf \\ (a; a))").statements
    assert isinstance(statement, LetRec)


def test_title_options_doc_and_shows() -> None:
    made = parse_model(
        "PTX v8 // a title of two words\n(* What it is for. *)\n(* mcheck: semantics = ptx-7.5 *)\n"
        "let hb = (po | rf)+ (* not a doc *)\nshow hb, po, rf; co as seen\nunshow po\nacyclic hb\n",
        "x.cat",
    )
    assert made.name == "v8"
    assert made.options == (("semantics", "ptx-7.5"),)
    assert made.doc == "a title of two words\nWhat it is for."
    assert [node.name for node in made.shows] == ["hb", "seen"]
    (check,) = (statement for statement in made.statements if isinstance(statement, Check))
    assert check.name == "acyclic hb"
    assert check.span is not None
    assert (check.span.line, check.span.column) == (7, 1)
    assert parse_model("acyclic po", "folder/own.cat").name == "own"


def test_includes_are_found_beside_the_file_then_among_the_shipped(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "part.cat").write_text("let part = po | rf\n")
    (tmp_path / "sub" / "all.cat").write_text('include "part.cat"\n')
    main = tmp_path / "main.cat"
    main.write_text('include "sub/all.cat"\ninclude "stdlib.cat"\ninclude "sc.cat"\nacyclic part | fr as Mine\n')
    made = load_model(str(main))
    checks = [check.name for check in made.statements if isinstance(check, Check)]
    assert checks == ["CoTotal", "SC", "Atomicity", "Mine"]
    assert made.options == (("semantics", "sc"),)
    assert made.name == "main"


def test_an_edited_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "m.cat"
    path.write_text("acyclic po as A\n")
    assert load_model(str(path)).statements
    path.write_text("acyclic rf as B\n")
    import os

    os.utime(path, ns=(1, 1))
    (check,) = load_model(str(path)).statements
    assert isinstance(check, Check)
    assert check.name == "B"


@pytest.mark.parametrize("name", model_names())
def test_shipped_model(name: str) -> None:
    text = (models_directory() / f"{name}.cat").read_text(encoding="utf-8")
    made = parse_model(text, str(models_directory() / f"{name}.cat"))
    assert made.name == name
    assert made.doc
    assert "semantics" in dict(made.options)
    checks = [statement for statement in made.statements if isinstance(statement, Check)]
    assert checks
    assert all(" " not in check.name for check in checks), "every axiom has a name"
    again = parse_model(show_model(made), "again.cat")
    assert show_model(again) == show_model(made)


def test_every_base_name_is_documented() -> None:
    for name, row in BASE.items():
        assert row.name == name
        assert len(row.doc) > 5
        assert row.section


def test_herds_total_coherence_may_be_included() -> None:
    statements = model('include "cos.cat"\nacyclic po-loc | rf | co | fr as Coherent').statements
    assert [check.name for check in statements if isinstance(check, Check)] == ["CoTotal", "Coherent"]


@pytest.mark.parametrize("name", model_names())
def test_the_printed_text_of_a_model_needs_no_other_file(name: str, tmp_path: Path) -> None:
    """``mcheck models NAME > mine.cat`` loads from any folder, as the same model."""
    mine = tmp_path / "mine.cat"
    mine.write_text(full_text(name), encoding="utf-8")
    assert 'include "' not in mine.read_text(encoding="utf-8")
    own, shipped = load_model(str(mine)), load_model(name)
    assert [show_statement(s) for s in own.statements] == [show_statement(s) for s in shipped.statements]
    assert (own.name, own.options) == (shipped.name, shipped.options)


def test_the_title_of_an_included_file_is_left_out_of_the_printed_text(tmp_path: Path) -> None:
    mine = tmp_path / "mine.cat"
    mine.write_text('"mine"\ninclude "cos.cat"\nacyclic po | rf | co | fr as SC\n', encoding="utf-8")
    text = full_text(str(mine))
    assert '"cos"' not in text
    assert parse_model(text, "other.cat").name == "mine"
