"""Launches over the nodes of an allocation."""
