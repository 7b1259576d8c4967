"""What the user sees of a command: stages, progress, tables."""
