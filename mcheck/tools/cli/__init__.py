"""The commands of ``mcheck``: one per file, called ``command``. Nothing heavy is imported before one runs."""
