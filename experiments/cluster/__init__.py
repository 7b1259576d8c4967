"""Batch systems: what a site needs, a job's script, its submission and its end."""
