"""Events, relations and event structures: what an engine explores, freed of the program's text."""
