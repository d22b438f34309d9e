"""What any memory model of this kind must satisfy, whatever the program: properties between two related programs.

Making an access or a fence stronger, or putting in another fence, never adds an outcome. A thread that only reads
changes nothing for the others, and one that writes takes nothing from them. The order of the threads does not matter.
``python -m tests.engines.explicit.test_explicit_properties 1000`` tries that many programs of each kind.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.engines.explicit.engine import answer
from mcheck.frontend import litmus
from tests.engines.explicit.programs import tables, tried
from tests.fuzz.programs import programs

MODELS = {name: load_model(name) for name in ("ptx-6.0", "ptx-7.5", "ptx-9.0", "ptx-9.3")}
WIDER = {"cta": "gpu", "gpu": "sys", "cluster": "gpu"}
State = frozenset[tuple[str, object]]


def solved(text: str, model: str) -> Answer:
    """The answer, all states included."""
    note(text)
    return answer(litmus.parse(text, "random.litmus"), MODELS[model], timeout=20)


def states(found: Answer, keep: Callable[[str], bool] = lambda name: True) -> set[State]:
    assume(found.verdict != "unknown")
    return {frozenset((n, v) for n, v in o.state if keep(n)) for o in found.outcomes}


# --- programs in the table form --------------------------------------------------------------------------


class Table:
    """The columns of a program in the table form."""

    def __init__(self, text: str) -> None:
        lines = text.rstrip("\n").split("\n")
        self.head, self.tail = lines[:2], lines[-2:]
        rows = [[c.strip() for c in line.rstrip("; ").split("|")] for line in lines[2:-2]]
        width = max(map(len, rows))
        self.columns = [list(c) for c in zip(*(row + [""] * (width - len(row)) for row in rows), strict=True)]

    def text(self) -> str:
        height = max(map(len, self.columns))
        full = [c + [""] * (height - len(c)) for c in self.columns]
        return "\n".join([*self.head, *(" | ".join(row) + " ;" for row in zip(*full, strict=True)), *self.tail]) + "\n"


def stronger(cell: str, random: Random) -> str:
    """One step towards a stronger order or a wider scope; the same cell if there is none."""
    steps = [
        lambda c: re.sub(r"^(ld|st)\.weak", rf"\1.relaxed.{random.choice(('cta', 'gpu', 'sys'))}", c),
        lambda c: re.sub(r"^ld\.relaxed", "ld.acquire", c),
        lambda c: re.sub(r"^st\.relaxed", "st.release", c),
        lambda c: re.sub(r"^(atom|red)\.(acquire|release)", r"\1.acq_rel", c),
        lambda c: re.sub(r"^(atom|red)\.relaxed", rf"\1.{random.choice(('acquire', 'release'))}", c),
        lambda c: c.replace("fence.acq_rel", "fence.sc"),
        lambda c: re.sub(r"\.(cta|gpu)\b", lambda m: f".{WIDER[m[1]]}", c) if "bar." not in c else c,
    ]
    return random.choice(steps)(cell)


def strengthened(text: str, random: Random) -> str:
    """The program with some instructions stronger, and now and then a fence more."""
    table = Table(text)
    for column in table.columns:
        for k in range(1, len(column)):
            if column[k] and "@" not in column[k]:
                column[k] = stronger(column[k], random)
        if random.random() < 0.4:
            fence = random.choice(("fence.acq_rel.gpu", "fence.sc.sys", "fence.sc.cta", "fence.proxy.alias"))
            column.insert(random.randint(1, len(column)), fence)
    return table.text()


def with_a_thread(text: str, random: Random, *, writes: bool) -> str:
    """The program with one more thread."""
    table = Table(text)
    more = ["ld.acquire.sys r0, x", "ld.weak r1, x", "fence.sc.gpu", "ld.relaxed.cta r2, x"]
    if writes:
        more += ["st.weak x, 2", "st.release.gpu x, 1", "atom.acq_rel.sys.add r3, x, 1", "red.relaxed.gpu.add x, 1"]
    place = f"P{len(table.columns)}@cta {random.randint(0, 2)},gpu {random.randint(0, 1)}"
    table.columns.append([place, *random.sample(more, random.randint(1, 3))])
    return table.text()


def permuted(text: str, order: list[int]) -> str:
    """The program with its threads in another order, its conditions renamed alike."""
    table = Table(text)
    table.columns = [table.columns[k] for k in order]
    for k, column in enumerate(table.columns):
        column[0] = re.sub(r"^P\d+", f"P{k}", column[0])
    table.tail = [re.sub(r"\bP(\d+):", lambda m: f"P{order.index(int(m[1]))}:", line) for line in table.tail]
    return table.text()


def strengthening_adds_nothing(text: str, model: str, random: Random) -> None:
    weak = solved(text, model)
    strong = solved(strengthened(text, random), model)
    assert states(strong) <= states(weak)


def a_reader_changes_nothing(text: str, model: str, random: Random) -> None:
    before, after = solved(text, model), solved(with_a_thread(text, random, writes=False), model)
    assert states(after) == states(before)
    assert after.verdict == before.verdict


def a_writer_takes_nothing_away(text: str, model: str, random: Random) -> None:
    before, after = solved(text, model), solved(with_a_thread(text, random, writes=True), model)
    registers = lambda name: ":" in name  # noqa: E731
    assert states(after, registers) >= states(before, registers)


def the_order_of_threads_is_nothing(text: str, model: str, random: Random) -> None:
    order = list(range(len(Table(text).columns)))
    random.shuffle(order)
    before, after = solved(text, model), solved(permuted(text, order), model)
    names = {f"P{k}": f"P{order.index(k)}" for k in order}
    renamed = {frozenset((re.sub(r"^P\d+", lambda m: names[m[0]], n), v) for n, v in s) for s in states(before)}
    assert states(after) == renamed
    assert (after.verdict, after.undefined, after.executions) == (before.verdict, before.undefined, before.executions)
    assert sorted(f.code for f in after.findings) == sorted(f.code for f in before.findings)


# --- programs with asynchronous operations -----------------------------------------------------------------


def roles(text: str) -> tuple[str, list[str], str]:
    """What stands before the roles, the roles, and what stands behind them."""
    found = re.findall(r"^\w+@.*?^}\n", text, flags=re.MULTILINE | re.DOTALL)
    return text[: text.index(found[0])], found, text[text.index(found[-1]) + len(found[-1]) :]


def errors(found: Answer) -> set[tuple[str, str]]:
    return {(f.kind, f.severity) for f in found.findings if f.severity == "error"}


def codes(found: Answer) -> set[str]:
    """The codes of the findings; that of a deadlock goes by the thread that is named first."""
    return {f.kind if f.kind == "deadlock" else f.code for f in found.findings}


def roles_in_any_order(text: str, model: str, random: Random) -> None:
    head, blocks, tail = roles(text)
    random.shuffle(blocks)
    before, after = solved(text, model), solved(head + "".join(blocks) + tail, model)
    assert states(after) == states(before)
    assert (after.verdict, after.undefined) == (before.verdict, before.undefined)
    assert codes(after) == codes(before)


def an_idle_thread_changes_nothing(text: str, model: str, random: Random) -> None:
    head, blocks, tail = roles(text)
    place = "cluster 1, cta 0" if "cluster 0" in text else f"cta {random.randint(2, 9)}"
    idle = f"P9@{place} {{ mov.u32 r0, 1; fence.sc.sys; fence.proxy.async; }}\n"
    before, after = solved(text, model), solved(head + "".join([*blocks, idle]) + tail, model)
    assert states(after) == states(before)
    assert (after.verdict, after.undefined) == (before.verdict, before.undefined)
    assert codes(after) == codes(before)


def a_fence_more_adds_nothing(text: str, model: str, random: Random) -> None:
    """Neither an outcome nor, where there was none, an error. An undefined execution has no outcomes to compare."""
    lines = text.split("\n")
    inside = [k for k, line in enumerate(lines) if line.startswith("  ") and k > lines.index("}")]
    fence = random.choice(("fence.proxy.async;", "fence.sc.sys;", "fence.acq_rel.cluster;", "fence.proxy.alias;"))
    lines.insert(random.choice(inside), "  " + fence)
    before, after = solved(text, model), solved("\n".join(lines), model)
    assert errors(after) <= errors(before)
    if not before.undefined:
        assert not after.undefined
        assert states(after) <= states(before)


Property = Callable[[str, str, Random], None]
GENERIC: tuple[Property, ...] = (
    strengthening_adds_nothing,
    a_reader_changes_nothing,
    a_writer_takes_nothing_away,
    the_order_of_threads_is_nothing,
)
ASYNCHRONOUS: tuple[Property, ...] = (roles_in_any_order, an_idle_thread_changes_nothing, a_fence_more_adds_nothing)


def trial(strategy: st.SearchStrategy[str], law: Property, model: str, examples: int) -> Callable[[], None]:
    @tried(examples)
    @given(strategy, st.randoms(use_true_random=False))
    def run(text: str, random: Random) -> None:
        law(text, model, random)

    return run


@pytest.mark.daily
@pytest.mark.parametrize("law", GENERIC, ids=lambda law: law.__name__)
@pytest.mark.parametrize("model", MODELS)
def test_generic(law: Property, model: str) -> None:
    trial(tables(most=5), law, model, 10)()


@pytest.mark.parametrize("model", ["ptx-7.5", "ptx-9.0"])
def test_order_of_threads_with_proxies(model: str) -> None:
    trial(tables(proxies=True, most=5), the_order_of_threads_is_nothing, model, 15)()


@pytest.mark.daily(days=12, least=0)
@pytest.mark.parametrize("law", ASYNCHRONOUS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("model", ["ptx-9.0", "ptx-9.3"])
def test_asynchronous(law: Property, model: str) -> None:
    trial(programs(), law, model, 10)()


def main(examples: int, only: str = "") -> None:
    for strategy, laws in ((tables(most=6), GENERIC), (programs(), ASYNCHRONOUS)):
        for law in laws:
            for model in MODELS if laws is GENERIC else ("ptx-9.0", "ptx-9.3"):
                if only in f"{law.__name__} {model}":
                    trial(strategy, law, model, examples)()
                    print(f"{law.__name__}, {model}: {examples} programs", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, *sys.argv[2:])
