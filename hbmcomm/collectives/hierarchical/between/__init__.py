"""Algorithms between hosts, as lists of steps: which host sends which entries to which."""
