"""Buffers, clocks and turns of one rank."""
