"""The language server of ``mcheck lsp`` for litmus tests, kernel sketches, PTX modules and cat models.

Only ``server`` depends on the protocol and pygls. The answers are computed by pure functions over a text: ``symbols``,
``hover``, ``completion``, and ``notes`` in a separate process (``worker``).
"""
