"""Measures the thresholds of transport direct on this machine and proposes a table of them."""
