"""From text to programs: litmus tests and kernel sketches (``litmus``), PTX modules and their launches (``ptx``)."""
