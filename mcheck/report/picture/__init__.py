"""Pictures of executions: ``layout`` computes positions; ``svg``, ``pdf``, ``tikz`` and ``formats`` draw."""
