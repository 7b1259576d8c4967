"""Guests of emulated machines: their disk, their boot, and how commands run in them."""
