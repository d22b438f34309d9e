"""The engine that puts its questions to Z3: structures and models of the exhaustive engine, solved, not searched."""
