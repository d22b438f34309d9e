"""What is read off the code of a thread."""

from __future__ import annotations

from mcheck.engines.protocol.analysis.code_facts import CodeFacts, PendingDepths, may_end_mbarriers
from mcheck.frontend.litmus import parse


def read(body: str) -> CodeFacts:
    """The reading of a thread."""
    text = f"PTX t\n{{ .shared .b64 bar; }}\nw@cta 0 {{ .reg .b64 t, u; .reg .pred p; .reg .b32 n; {body} }}\n"
    program = parse(text, "t.litmus")
    return CodeFacts(program.threads[0], may_end_mbarriers(program))


def test_waits_for_reads_reach_less_deep_than_those_for_all() -> None:
    found = read("cp.async.bulk.wait_group.read 3; cp.async.bulk.wait_group 1; cp.async.wait_all;")
    assert found.pending_depths("bulk") == PendingDepths(1, 3)
    assert found.pending_depths("cp.async") == PendingDepths(0, 0)


def test_an_arrive_tells_of_copies() -> None:
    assert read("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];").arrives_on_cp_async
    assert not read("mbarrier.arrive.shared::cta.b64 _, [bar];").arrives_on_cp_async


ARRIVE = "mbarrier.arrive.shared::cta.b64 t, [bar];"


def test_what_holds_states_alone() -> None:
    for body, states in (
        (f"{ARRIVE} mbarrier.test_wait.shared::cta.b64 p, [bar], t;", {"t"}),
        (f"{ARRIVE} await mbarrier.try_wait.shared::cta.b64 [bar], t;", {"t"}),
        (f"{ARRIVE} mbarrier.pending_count.b64 n, t;", {"t"}),
        (f"{ARRIVE} mov.b64 u, t; mbarrier.test_wait.shared::cta.b64 p, [bar], u;", set()),
        (f"mov.u32 n, 0; setp.eq.u32 p, n, 0; {ARRIVE} @p mov.b64 t, 5;", set()),
        (f"{ARRIVE} mbarrier.inval.shared::cta.b64 [bar];", set()),
    ):
        assert read(body).state_registers == states, body


def test_where_branches_lead_back_to() -> None:
    found = read("A: mov.u32 n, 0; B: mov.u32 n, 1; @p bra B; mov.u32 n, 2; C: mov.u32 n, 3; @p bra B; mov.u32 n, 4;")
    labels = found.thread.labels
    back = found.earliest_reachable
    assert back[labels["A"]] == labels["A"]
    assert back[labels["A"] + 1] == labels["A"] + 1
    assert {back[at] for at in range(labels["B"], labels["C"] + 3)} == {labels["B"]}
    assert back[labels["C"] + 3] == labels["C"] + 3


def test_a_place_is_come_back_to_by_way_of_others() -> None:
    found = read("A: mov.u32 n, 0; B: mov.u32 n, 1; @p bra A; C: mov.u32 n, 2; @p bra B;")
    assert found.earliest_reachable[found.thread.labels["C"]] == found.thread.labels["A"]
