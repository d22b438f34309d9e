"""Pictures of executions: ``layout`` places them, ``svg`` draws them, ``formats`` writes DOT and GraphML."""
