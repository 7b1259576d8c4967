"""Where a launch runs. Each environment turns a launch into a command; none runs it."""
