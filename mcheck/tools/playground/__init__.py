"""mcheck in a browser: ``build`` assembles the folder, ``answers`` is what its worker asks, ``links`` leads to it."""
