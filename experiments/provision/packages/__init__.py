"""Packages of the system, and where they come from."""
