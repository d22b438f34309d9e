"""The engines: ``explicit``, ``z3``, ``protocol`` and ``concrete``; none imports another. ``search`` is shared."""
