"""The z3 engine: event structures and models as formulas, solved by Z3."""
