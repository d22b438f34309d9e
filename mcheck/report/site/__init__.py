"""Allowed outcomes as documents: ``page`` gathers what a page says, ``build`` writes the site."""
