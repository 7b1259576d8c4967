"""Algorithms between hosts, as lists of steps: who sends which entries to whom."""
