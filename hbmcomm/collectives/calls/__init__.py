"""Calls of the core, and their requests and plans."""
