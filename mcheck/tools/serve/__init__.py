"""The server of ``mcheck serve``: checks for programs and agents that ask again and again, over MCP.

``server`` depends on the protocol and on the package mcp, and imports no engine. It hands a request (``requests``) to
``processes``, which has it answered by a fork of a process in which everything is loaded (``fork_server``). The answers
(``answers``) are computed there by ``answering`` and ``repairs``, and are plain data.
"""
