"""Advice: which order, wait or fence two accesses lack, computed once from an execution graph, for all engines."""
