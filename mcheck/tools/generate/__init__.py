"""Litmus tests from cycles of relations.

An alphabet (``alphabet``, data files in ``litmus/generate``) says which ends and edges there are; ``cycles`` lists the
cycles of a size, each once; ``layout`` gives them threads, places, locations and values; ``write`` prints a litmus test
that asks for the cycle; ``names`` calls it as diy would; ``judge`` says what a model makes of it.
"""
