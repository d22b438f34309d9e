"""The site of ``mcheck doc``: ``page`` computes the content of a page, ``build`` writes the site."""
