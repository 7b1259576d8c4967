"""The map of a machine: where each page and rank was."""
