"""The import graph: no arrow up, no circle, no engine on another, every room in the plan."""

from __future__ import annotations

import networkx as nx
import pytest

from tests.architecture.rooms import LEVEL, arrows, imports, plan, room_of

ENGINES = ("engines.explicit", "engines.z3", "engines.protocol", "engines.concrete")


def test_the_graph_is_that_of_the_package() -> None:
    assert imports().number_of_nodes() > 200
    assert imports().has_edge("mcheck.engines.explicit.engine", "mcheck.answers.result")


def test_every_room_has_its_level_and_nothing_else_has() -> None:
    rooms = {room_of(module) for module in imports()} - {"", "engines"}
    assert rooms == set(LEVEL)


def test_no_module_is_in_a_cycle() -> None:
    assert [sorted(c) for c in nx.strongly_connected_components(imports()) if len(c) > 1] == []


@pytest.mark.parametrize("room", LEVEL)
def test_no_arrow_leads_up(room: str) -> None:
    """Nor sideways: rooms of one level know nothing of each other."""
    up = [pairs for (a, b), pairs in arrows().items() if a == room and LEVEL[b] >= LEVEL[a]]
    assert up == []


def test_no_engine_imports_another() -> None:
    assert [pair for pair in arrows() if set(pair) <= set(ENGINES)] == []


def test_only_the_policy_chooses_engines() -> None:
    """Commands, suites and reports go through ``mcheck.checking.policy``; ``exec`` asks no engine for an answer."""
    asked = {"engines.explicit", "engines.z3", "engines.protocol", "proofs"}
    askers = {a for (_, b), pairs in arrows().items() if b in asked for a, _ in pairs if room_of(a) == "checking"}
    assert {a.rpartition(".")[0] for a in askers} <= {"mcheck.checking.policy", "mcheck.checking.modules"}
    assert {a for a, b in arrows() if b in asked} <= {*asked, "checking"}


def test_the_plan_names_every_room() -> None:
    assert all(f"  {room} " in plan() for room in LEVEL)
