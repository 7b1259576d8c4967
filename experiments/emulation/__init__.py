"""Emulated machines: what they are, QEMU's command, what must be found in them."""
