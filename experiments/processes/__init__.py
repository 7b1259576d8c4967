"""Processes of this machine and what they hold: identity, locks, scratch folders."""
