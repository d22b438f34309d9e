"""Candidate executions: what an execution chooses on an event structure, and what a model says before it is chosen."""
