"""The commands of ``mcheck``, one per file, each named ``command``; heavy imports wait until one runs."""
