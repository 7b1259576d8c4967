"""What the user sees of a command at work: stages, progress, errors."""
