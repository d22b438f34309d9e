"""Handoffs of data that are right, put together from an access, what completes and publishes it, and another access.

A scene gives some bytes from one thread to the next: every access (generic, atomic, or any kind of copy) with the proxy
fence and the synchronisation that its successor needs, for threads of one warp, of one CTA, of a cluster, or apart.
"""
