"""Processes of this machine and their files: identity, locks, scratch folders, logs, hashes."""
