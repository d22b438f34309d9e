"""Concrete SIMT execution of a PTX module: one cluster is run and its trace becomes a program
(``trace_extraction``).
"""
