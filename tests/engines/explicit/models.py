"""Models as users write them, in shapes that the shipped ones do not have."""

from __future__ import annotations

from mcheck.cat import parse_model
from mcheck.cat.ast import Model

TEXTS = {
    "herd": """
        let fr = rf^-1; co
        acyclic po | rf | fr | co as sc
        empty rmw & (fr; co) as atomic""",
    "coherence only": """
        let fr = rf^-1; co
        acyclic po-loc | rf | fr | co as coherence""",
    "tso": """
        let fr = (rf^-1; co) \\ id
        let ppo = po \\ (W * R)
        let mfence = po & (_ * F); po
        acyclic po-loc | rf | fr | co as uniproc
        empty rmw & ((fr & ext); (co & ext)) as atomic
        acyclic ppo | mfence | (rf & ext) | fr | co as tso""",
    "one direction of a demand": """
        let seen = (rf; po) & (W * W) & loc
        empty seen \\ (co | co^-1) as ordered
        acyclic rf | data | ctrl | (rf^-1; co) as air""",
    "the other direction": """
        let seen = ((rf; po) & (W * W) & loc)^-1
        empty (seen \\ id) \\ (co^-1 | co) as ordered
        acyclic rf | data | ctrl as air""",
    "a reflexive demand": """
        empty ((W * W) & loc & (rf; po)+) \\ co as ordered
        empty (([W & RLX]; rf; rf^-1; [W]) & ext) \\ (co | co^-1) as odd
        acyclic rf | data | ctrl as air""",
    "a demand on everything": """
        empty ((W * W) & loc) \\ (co | co^-1) as ordered""",
    "a demand that shrinks": """
        let pair = ((W * W) & loc & ext) \\ ((IW * W) | (W * IW))
        let seen = (rf; po) | (rf; po)^-1
        empty (pair \\ seen) \\ co as ordered
        acyclic rf | data | ctrl as air""",
    "a demand that shrinks with co": """
        let fr = rf^-1; co
        empty (((W * W) & loc & ext) \\ (IW * W) \\ (co; co)) \\ (co | co^-1) as ordered
        acyclic rf | data | ctrl | fr as air""",
    "wants an order": """
        let two = ((W * W) & loc & ext) \\ ((IW * W) | (W * IW))
        empty ((W * W) & loc & po) \\ co as local
        ~empty (co & two) as some
        acyclic rf | data | ctrl as air""",
    "wants disorder": """
        empty ((W * W) & loc & po) \\ co as local
        empty co & (rf; rf^-1; (co & ext)) as odd
        ~empty ~(co | co^-1) & (W * W) as open
        acyclic rf | data | ctrl as air""",
    "negated acyclicity": """
        ~acyclic po | rf | co | rf^-1 as cycle
        ~irreflexive (rf; rf^-1) | (co; co^-1) as loops
        acyclic rf | data | ctrl as air""",
    "other names": """
        let order = co | ((IW * W) & loc)
        let fr = (rf^-1; order) & ext
        let co = (order & ext)
        acyclic po | rf | fr | co as external
        irreflexive (co; rf^-1^-1) as nothing""",
    "several recursive names": """
        let rec a = po | (b; c) and b = (rf & ext) | (a; b) and c = (a & ext) | (rf^-1; co) | (c; a)
        irreflexive (a | b | c) as one
        acyclic rf | data | ctrl as air""",
    "recursion over a difference": """
        let base = (po \\ (W * R)) | rf
        let rec up = base | (up; (up \\ po-loc)) | ((co \\ po); up)
        irreflexive up as one
        empty ((W * W) & loc & po) \\ co as demanded""",
    "fence orders": """
        let strong = ([F & SC]; po)
        acyclic sync_fence | (sync_fence; po; rf; po) | (strong; (rf^-1; co)) as fences
        empty ([F & SC]; po; [F & SC]) \\ (sync_fence | ~sr) as inner
        acyclic po-loc | rf | (rf^-1; co) | co as uniproc""",
    "a wish about fences": """
        ~empty (sync_fence & (ext \\ (rf; po)^-1)) | (_ * _) \\ ((F & SC) * (F & SC)) as some
        acyclic po | rf | co | sync_fence as one""",
    "flags on chosen orders": """
        empty ((W * W) & loc & po) \\ co as local
        acyclic rf | data | ctrl as air
        flag ~empty (co & ext & (RLX * RLX)) as RACE001
        flag ~empty (sync_fence & (po^-1 | po | ext)) as RACE002
        flag ~irreflexive (co; (rf; rf^-1)) as RACE003
        flag ~acyclic po | rf | co as RACE004""",
    "domains and products": """
        let late = range(rf & ext) & W
        let first = domain(co & ext)
        empty (first * range(sync_fence)) & (po; rf) as one
        acyclic (rf | po) & (_ * (R \\ domain(co))) | co as two
        irreflexive ((R * W) & ~data); rf as three
        empty late & F as four""",
}


def all_models() -> dict[str, Model]:
    return {name: parse_model(f'"{name}"\n{text}', f"{name}.cat") for name, text in TEXTS.items()}
