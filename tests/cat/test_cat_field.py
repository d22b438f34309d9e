"""Models as herd and Dat3M write them: what loads, what it means, and what is refused by name.

Two machines are the yardstick: one that interleaves, and one whose threads put their stores into buffers first.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mcheck.base.errors import InputError
from mcheck.cat import load_model, parse_model
from mcheck.cat.ast import Base, Check, Kind, Let, Model, Op2
from mcheck.engines.explicit.engine import answer
from mcheck.engines.z3.engine import answer as solve
from mcheck.frontend.litmus import parse
from tests.cat.pretty import show

FIELD = Path(__file__).parent / "field"
LOCATIONS = ("x", "y")
PROGRAMS = 100

Access = tuple[str, str]  # ld, st, add or fence, and a location
Code = tuple[tuple[Access, ...], ...]  # by thread
State = tuple[int, ...]
Buffers = tuple[tuple[tuple[str, int], ...], ...]  # by thread, oldest first


def program(seed: int) -> Code:
    """Two threads, each a store to its location and a load of the other's with something before, between or after."""
    chance = random.Random(seed)

    def some() -> list[Access]:
        kinds = ["ld", "st", "add", "fence"]
        return [(chance.choice(kinds), chance.choice(LOCATIONS)) for _ in range(chance.choice([0, 0, 0, 1, 1]))]

    threads = []
    for own, other in (LOCATIONS, LOCATIONS[::-1]):
        threads.append((*some(), ("st", own), *some(), ("ld", other), *some()))
    return tuple(threads)


def number(thread: int, index: int) -> int:
    return 1 << (4 * thread + index)


def text(code: Code) -> str:
    """The table form; every store writes its own value, every atomic adds its own power of two."""
    columns: list[list[str]] = []
    for t, thread in enumerate(code):
        rows = []
        for i, (kind, location) in enumerate(thread):
            match kind:
                case "ld":
                    rows.append(f"ld.relaxed.sys r{i}, {location}")
                case "st":
                    rows.append(f"st.relaxed.sys {location}, {number(t, i)}")
                case "add":
                    rows.append(f"atom.relaxed.sys.add r{i}, {location}, {number(t, i)}")
                case _:
                    rows.append("fence.sc.sys")
        columns.append(rows)
    height = max(map(len, columns))
    lines = [" | ".join(f"P{t}@cta {t},gpu 0" for t in range(len(code))) + " ;"]
    lines += [" | ".join(c[row] if row < len(c) else "" for c in columns) + " ;" for row in range(height)]
    terms = [f"P{t}:r{i} == 0" for t, i in registers(code)] + [f"{location} == 0" for location in LOCATIONS]
    return "PTX random\n{ x=0; y=0; }\n" + "\n".join(lines) + "\nexists (" + " /\\ ".join(terms) + ")\n"


def registers(code: Code) -> list[tuple[int, int]]:
    """(thread, index) of every access that returns a value."""
    return [(t, i) for t, thread in enumerate(code) for i, (kind, _) in enumerate(thread) if kind in ("ld", "add")]


def machine(code: Code, *, buffers: bool) -> set[State]:
    """The final states of the machine, in the order of ``text``'s condition."""
    found: set[State] = set()
    seen: set[object] = set()
    order = registers(code)

    def run(at: State, memory: dict[str, int], waiting: Buffers, values: dict[tuple[int, int], int]) -> None:
        key = (at, tuple(memory.items()), waiting, tuple(sorted(values.items())))
        if key in seen:
            return
        seen.add(key)
        if all(at[t] == len(thread) for t, thread in enumerate(code)) and not any(waiting):
            found.add((*(values[register] for register in order), *(memory[location] for location in LOCATIONS)))
        for t, thread in enumerate(code):
            mine = waiting[t]
            if mine:
                (location, value), *others = mine
                run(at, {**memory, location: value}, (*waiting[:t], tuple(others), *waiting[t + 1 :]), values)
            if at[t] == len(thread):
                continue
            kind, location = thread[at[t]]
            if kind in ("add", "fence") and mine:
                continue
            later, got, mine_then = memory, values, mine
            if kind in ("ld", "add"):
                got = {**values, (t, at[t]): dict(mine).get(location, memory[location])}
            if kind == "add":
                later = {**memory, location: memory[location] + number(t, at[t])}
            elif kind == "st" and buffers:
                mine_then = (*mine, (location, number(t, at[t])))
            elif kind == "st":
                later = {**memory, location: number(t, at[t])}
            run((*at[:t], at[t] + 1, *at[t + 1 :]), later, (*waiting[:t], mine_then, *waiting[t + 1 :]), got)

    run((0,) * len(code), dict.fromkeys(LOCATIONS, 0), ((),) * len(code), {})
    return found


def states(source: str, model: Model) -> set[tuple[object, ...]]:
    result = answer(parse(source, "random.litmus"), model)
    assert result.complete
    return {tuple(value for _, value in outcome.state) for outcome in result.outcomes}


@pytest.mark.daily
@pytest.mark.parametrize(("name", "buffers"), [("sc", False), ("tso", True)])
def test_a_model_in_the_style_of_the_field_allows_what_its_machine_does(name: str, buffers: bool) -> None:
    model = load_model(str(FIELD / f"{name}.cat"))
    weak = 0
    for seed in range(PROGRAMS):
        code = program(seed)
        expected = machine(code, buffers=buffers)
        assert states(text(code), model) == expected, text(code)
        weak += expected != machine(code, buffers=not buffers)
    assert weak >= PROGRAMS // 10  # of so many programs the two machines say different things


def test_z3_reads_the_model_alike() -> None:
    model = load_model(str(FIELD / "tso.cat"))
    for seed in range(3):
        test = parse(text(program(seed)), "random.litmus")
        assert {o.state for o in solve(test, model).outcomes} == {o.state for o in answer(test, model).outcomes}


def body(text: str) -> str:
    """The last definition of a model, as checked."""
    statement = parse_model(f'"test"\n{text}', "test.cat").statements[-1]
    assert isinstance(statement, Let)
    return show(statement.body)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("let a = try nothing with po", "po"),
        ("let a = try po with nothing", "po"),
        ("let a = (try {nothing} with {}) | W", "W"),
        ('let a = if "vmsa" then nothing else po', "po"),
        ('let a = if not "vmsa" && (not "b" || "c") then po else nothing', "po"),
        ("let a = if 0 = {} then po else rf", "po"),
        ("let f = fun x -> x; rf\nlet a = f po", "po; rf"),
        ("let apply (f, x) = f x\nlet a = apply (fun r -> r^-1, po)", "po^-1"),
        ("let twice f = fun x -> f (f x)\nlet g r = r; rf\nlet a = twice g po", "(po; rf); rf"),
        ("let (a, b) = (po, rf)", "rf"),
        ("let f x = (x, x^-1)\nlet a = let (u, v) = f po in u; v", "po; po^-1"),
        ("let g _ = po\nlet a = g rf", "po"),
        ("let rec join s = match s with || r ++ s -> r | join s || {} -> 0 end\nlet a = join {po, rf}", "po | rf"),
        ("let f S = match S with || {} -> 0 || r ++ _ -> r end\nlet a = f (map (fun r -> r; rf) {po, co})", "po; rf"),
        ("with a from {po}\nlet b = a | rf", "po | rf"),
        ("let A = fencerel(MFENCE)", "po; [MFENCE]; po"),
    ],
)  # fmt: skip
def test_functional_parts_are_gone_when_the_model_is_checked(text: str, meaning: str) -> None:
    assert body(text) == meaning


def test_the_total_orders_of_the_writes_are_the_choice_of_co() -> None:
    statements = load_model(str(FIELD / "sc.cat")).statements
    checks = {s.name: s.body for s in statements if isinstance(s, Check)}
    assert {"Known", "CoTotal", "CoExtends"} < set(checks)
    extends = checks["CoExtends"]
    assert isinstance(extends, Op2)
    assert extends.right == Base("co", Kind.REL)
    assert "IW" not in show(extends)  # that initial writes come first goes without saying


def test_a_comment_that_never_nests_ends_where_it_can() -> None:
    assert len(parse_model('"m"\n(* Dat3M (* reads this *)\nacyclic po as A\n', "m.cat").statements) == 1
    assert len(parse_model('"m"\n(* herd (* reads *) acyclic rf *)\nacyclic po as A\n', "m.cat").statements) == 1


def test_the_names_of_x86_mean_nothing_elsewhere(tmp_path: Path) -> None:
    library = tmp_path / "fences.cat"
    library.write_text("let mfence = try fencerel(MFENCE) with 0\n")
    for before in ("", "(* no MFENCE here *)\n", 'include "fences.cat"\n'):
        with pytest.raises(InputError, match="unknown name A"):
            parse_model(f'"m"\n{before}acyclic [A]; po as Acquire\n', str(tmp_path / "m.cat"))
    assert parse_model('"m"\ninclude "fences.cat"\nacyclic [A]; mfence as M\n', str(tmp_path / "m.cat")).statements


def test_endless_calls_end() -> None:
    with pytest.raises(InputError) as caught:
        parse_model('"m"\nlet rec f x = f (x; x)\nacyclic f po as A\n', "m.cat")
    assert caught.value.code == "CAT046"
