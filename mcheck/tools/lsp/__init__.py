"""The language server of ``mcheck lsp``: what an editor is told about litmus tests, kernel sketches and cat models.

``server`` alone knows the protocol and pygls. What it asks is computed by pure functions over a text: ``symbols``,
``hover``, ``completion``, and ``notes`` in a process of its own (``worker``).
"""
