"""Errors, phrases, frozen records, files, streams, time limits: the foundations that all other packages use."""
