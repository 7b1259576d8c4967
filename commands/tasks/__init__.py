"""The invoke tasks with the most flags; tasks.py has the others."""
