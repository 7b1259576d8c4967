"""Emulated machines: what they are, how QEMU shows them, and how commands run in their guests."""
