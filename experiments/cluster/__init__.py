"""Batch systems: what a site wants to be told, a job's script, its submission and its end."""
