"""Errors, frozen records, files, streams, the budget of an answer: what everything else stands on."""
