"""Emulated machines: what they are, how QEMU shows them, and whether a guest shows them right."""
