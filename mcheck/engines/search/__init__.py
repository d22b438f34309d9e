"""The search that ``explicit`` and ``z3`` share: one event structure after the other, put to the engine."""
