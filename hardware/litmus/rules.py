"""The rules of the model beside what the chip does with them and without them: the tables of docs/hopper.md.

python -m hardware.litmus.rules            # rewrites the tables
python -m hardware.litmus.rules --check    # says whether they are up to date
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from mcheck.report.hardware_results import Observation, load, observation_file

PAGE = Path(__file__).parents[2] / "docs" / "hopper.md"
BEGIN, END = "<!-- begin {} -->", "<!-- end {} -->"


class Rule(NamedTuple):
    """A rule, its section, tests that keep it and tests that do not."""

    text: str
    section: str
    kept: tuple[str, ...]
    broken: tuple[str, ...]


RULES = (
    Rule("A release and an acquire hand over what came before", "8.8", ("MP+rel+acq", "MP+fence.acq_rels"),
         ("MP+rlxs", "MP+rlx+rlx", "MP+weak+weak", "MP+po+fence.acq_rel", "MP+fence.acq_rel+po")),
    Rule("Their scopes include both threads", "8.7", ("MP+membar.gls",), ("MP+membar.ctas+other-cta",
         "MP+fence.cta+flag.gpu", "MP+fence.release.cluster+other-cluster")),
    Rule("fence.sc on both sides orders a store before a load", "8.9.3", ("SB+membar.gls", "SB+membar.gl+fence.sc.gpu"),
         ("SB+rlx+rlx", "SB+fence.sc.ctas+other-cta", "SB+fence.acq_rels")),
    Rule("All threads see stores in one order, with fence.sc", "8.10.6", ("IRIW+fence.scs",),
         ("IRIW+rlx", "IRIW+acqs", "IRIW+fence.acq_rels")),
    Rule("What is handed over is handed on", "8.9.5", ("WRC+fences", "WRC+rel+acq"), ("WRC+rlx",)),
    Rule("No value comes out of thin air", "8.10.4", ("LB+datas", "LB+ctrls"), ("LB+rlx+rlx",)),
    Rule("A location has one order", "8.10.5", ("CoRR+rlx",), ()),
    Rule("Two threads store to the same two places, with fence.sc", "8.9.3", ("2+2W+fence.scs",), ("2+2W+rlx",)),
    Rule("cp.async is over after a wait", "9.7.9.25.3.3",
         ("cp-async-wait-group-0-then-read", "cp-async-wait-then-bar-sync"),
         ("cp-async-read-before-wait", "cp-async-bar-sync-without-wait", "cp-async-wait-by-another-thread")),
    Rule("A bulk load is over after a wait on its mbarrier", "9.7.9.25.1.2", ("bulk-load-wait-read",),
         ("bulk-load-read-before-wait", "bulk-load-barrier-without-wait", "bulk-load-not-waited-by-group")),
    Rule("The source of a bulk store is free after its issuer's wait", "9.7.9.25.6",
         ("bulk-store-read-wait-then-overwrite-source",),
         ("bulk-store-overwrite-source-without-wait", "bulk-store-wait-by-another-thread",
          "bulk-store-wait-by-another-thread-long")),
    Rule("A bulk store is published by the full wait and a release", "9.7.9.25.6",
         ("bulk-store-full-wait-then-release",),
         ("bulk-store-read-wait-then-release", "bulk-store-full-wait-then-relaxed-flag",
          "bulk-store-read-wait-then-read", "bulk-store-release-too-narrow", "reduce-is-not-published-by-relaxed")),
    Rule("Generic writes, a proxy fence, then a copy that reads", "9.7.9.25.2",
         ("bulk-proxy-raw-writer-fence", "bulk-proxy-raw-issuer-fence", "bulk-proxy-raw-mbarrier-writer-fence",
          "bulk-proxy-raw-halves", "bulk-proxy-raw-global-flag-fenced"),
         ("bulk-proxy-raw-no-fence", "bulk-proxy-raw-memory-fence", "bulk-proxy-raw-fence-global-space",
          "bulk-proxy-raw-mbarrier-fence-after-arrive", "bulk-proxy-raw-one-of-two-writers-fences",
          "bulk-proxy-raw-two-acquire-halves", "bulk-proxy-raw-global-flag-unfenced")),
    Rule("Generic reads, a proxy fence, then a copy that writes", "9.7.9.25.2",
         ("bulk-ring-one-slot", "bulk-ring-one-slot-issuer-fence"),
         ("bulk-ring-one-slot-no-fence", "bulk-ring-one-slot-wrong-space", "bulk-ring-one-slot-fence-after-arrive")),
    Rule("complete-tx publishes its copy and nothing else", "8.9.1.1", ("bulk-dsm-copy-with-release-arrive",),
         ("bulk-multicast-does-not-publish-stores", "bulk-complete-tx-publishes-only-its-copy")),
    Rule("What waits for the answer of a look, or stands behind an acquire fence, comes after the look", "9.7.13.15",
         ("mbarrier-look-load-if-true", "mbarrier-look-branch-load", "mbarrier-look-address-load",
          "mbarrier-look-fence-load", "mbarrier-look-store-if-true", "mbarrier-look-load-copied-if-true",
          "mbarrier-looks-see-each-others-arrivals-fences", "mbarrier-try-wait-acq-rel-cta-fence-load",
          "mbarrier-try-wait-sc-gpu-fence-load", "mbarrier-look-sc-cta-fence-load"),
         ("mbarrier-look-then-load", "mbarrier-look-cluster-then-load", "mbarrier-try-wait-then-load",
          "mbarrier-look-then-global-load", "mbarrier-look-then-atomic", "mbarrier-two-looks-then-load",
          "mbarrier-look-warp-sync-load", "mbarrier-look-then-store", "mbarrier-look-then-load-copied",
          "mbarrier-looks-see-each-others-arrivals", "mbarrier-looks-see-each-others-arrivals-one-fence",
          "mbarrier-look-barrier-load-by-another", "mbarrier-try-wait-sc-cta-fence-load")),
    Rule("What needs the answer of a try_wait, or is behind an acquire fence, comes behind it on its mbarrier; "
         "test_wait keeps the order", "9.7.13.15.16",
         ("mbarrier-try-wait-guard-look", "mbarrier-try-wait-value-look", "mbarrier-try-wait-fence-look",
          "mbarrier-try-wait-fence-own-arrival", "mbarrier-look-then-look", "mbarrier-look-then-try-wait",
          "mbarrier-look-sees-no-own-arrival"),
         ("mbarrier-try-wait-then-look", "mbarrier-try-wait-then-try-wait", "mbarrier-try-wait-sc-fence-look",
          "mbarrier-try-wait-sees-own-arrival", "mbarrier-try-wait-sees-own-complete-tx")),
    Rule("A look is over before a copy behind it if a fence is between, or the copy depends on the answer", "8.9.1.1",
         ("mbarrier-look-memory-fence-copy", "mbarrier-look-cta-fence-copy", "mbarrier-look-copy-if-false",
          "mbarrier-look-either-copy", "mbarrier-look-address-copy", "mbarrier-look-then-arrive-and-copy",
          "mbarrier-two-looks-before-the-copy", "mbarrier-relaxed-look-address-copy"),
         ("mbarrier-look-before-the-copy", "mbarrier-try-wait-before-the-copy", "mbarrier-relaxed-look-before-the-copy",
          "mbarrier-look-fence-copy", "mbarrier-look-release-copy", "mbarrier-look-arrive-elsewhere-copy",
          "mbarrier-look-awaited-flag-copy", "mbarrier-look-barrier-copy-by-another",
          "mbarrier-look-release-copy-by-another", "mbarrier-look-flag-copy-by-another",
          "mbarrier-look-arrive-copy-by-another", "mbarrier-look-complete-tx-copy-by-another",
          "mbarrier-look-wait-copy-by-another", "mbarrier-look-barrier-copy", "mbarrier-look-cp-async-arrive")),
    Rule("A fence restricted to a space hands over what it covers", "9.7.13.4",
         ("MP+rel+restricted-acquire", "MP+restricted-release+acq", "bulk-relaxed-wait-then-restricted-acquire"),
         ("MP+restricted-acquire+acq", "MP+rel+restricted-release", "MP+fence.cta+restricted-acquire")),
    Rule("A tensor map that changes: a release and an acquire of its proxy, the latter of this map", "8.6, 9.7.13.4",
         ("tensor-map-replaced-with-fence-pair", "tensor-map-replaced-by-another-cta",
          "tensor-map-replaced-halves-over-relaxed-flag", "tensor-map-copied-with-cp-fenceproxy"),
         ("tensor-map-replaced-without-fences", "tensor-map-replaced-release-half-only",
          "tensor-map-replaced-acquire-half-only", "tensor-map-replaced-acquire-of-another-map",
          "tensor-map-replaced-async-fence-instead", "tensor-map-replaced-by-another-cta-no-flag",
          "tensor-map-copied-without-acquire")),
    Rule("A tensor map may change once its copy is complete", "9.7.9.25.1, 9.7.9.25.6",
         ("tensor-map-replaced-after-completion", "tensor-map-replaced-after-store-read-wait-and-fences",
          "tensor-map-replaced-after-store-read-wait"),
         ("tensor-map-replaced-in-flight", "tensor-map-replaced-after-load-read-wait")),
    Rule("A wait on an mbarrier acquires, unless it is relaxed", "9.7.13.15", ("bulk-relaxed-wait-then-acquire-fence",),
         ("bulk-relaxed-wait-alone",)),
    Rule("What is written by one virtual address is read by another behind an alias fence", "8.6",
         ("Alias+fence", "Alias+CoWW+fence", "Alias+CoRW+fence", "MP+alias+writer-fence", "MP+alias+reader-fence",
          "MP+alias+third-thread-fence"),
         ("Alias+no-fence", "Alias+CoWW", "Alias+fence-too-early", "CoRR+alias+relaxed", "Alias+memory-fence",
          "MP+alias+no-fence")),
    Rule("The ends of a synchronising pair access the same bytes at one scope", "8.7, 8.9.4", (),
         ("Mixed-size-release+narrow-read", "Mixed-size-release+rewritten")),
)  # fmt: skip


@cache
def tables() -> dict[str, str]:
    """The tables by name."""
    runs, found = load(observation_file())
    by_name: dict[str, list[Observation]] = {}
    for seen in found.values():
        by_name.setdefault(seen.name.rsplit("/", 1)[-1].removesuffix(".litmus"), []).append(seen)
    return {"rules": "\n".join(_rules(by_name)), "totals": "\n".join(_totals(runs, found))}


def _rules(found: dict[str, list[Observation]]) -> Iterator[str]:
    yield "| rule | section | kept: what it forbids, seen | broken: seen |"
    yield "|---|---|---|---|"
    for rule in RULES:
        kept = "<br>".join(_cell(name, found) for name in rule.kept)
        broken = "<br>".join(_cell(name, found) for name in rule.broken)
        yield f"| {rule.text} | {rule.section} | {kept} | {broken} |"


def _cell(name: str, found: dict[str, list[Observation]]) -> str:
    mine = [o for o in found.get(name, ()) if o.states]
    if not mine:
        return f"`{name}`: not run"
    hits, count = sum(o.hits for o in mine), sum(o.instances for o in mine)
    share = f", {hits / count:.1g} of {_short(count)}" if hits else f" of {_short(count)}"
    best = max(mine, key=lambda o: o.strongest_setting[1]).strongest_setting
    strongest = f" (at most {best[1]:.2g}: {best[0]})" if hits else ""
    return f"`{name}`: {_short(hits)}{share}{strongest}"


def _short(number: int) -> str:
    for unit, size in ((" T", 10**12), (" G", 10**9), (" M", 10**6), (" k", 10**4)):
        if number >= size:
            return f"{number / (size if unit != ' k' else 1000):.3g}{unit}"
    return str(number)


def _totals(runs: list[object], found: dict[str, Observation]) -> Iterator[str]:
    groups: dict[str, list[Observation]] = {}
    for seen in found.values():
        groups.setdefault("litmus" if seen.name.startswith("litmus/") else seen.name.split("/")[0], []).append(seen)
    yield "| tests | number | instances |"
    yield "|---|---|---|"
    for name, mine in groups.items():
        label = "of the suites" if name == "litmus" else f"generated, `{name}`"
        yield f"| {label} | {len(mine):,} | {_short(sum(o.instances for o in mine))} |"
    yield f"| together | {len(found):,} | {_short(sum(o.instances for o in found.values()))} |"


def written(text: str) -> str:
    """The page with the tables of today."""
    for name, table in tables().items():
        head, rest = text.split(BEGIN.format(name), 1)
        _, tail = rest.split(END.format(name), 1)
        text = f"{head}{BEGIN.format(name)}\n{table}\n{END.format(name)}{tail}"
    return text


def main() -> int:
    """The command line."""
    old = PAGE.read_text()
    new = written(old)
    if "--check" in sys.argv:
        return int(old != new)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
