"""Candidate executions: the choices on an event structure, and what a model decides before they are made."""
