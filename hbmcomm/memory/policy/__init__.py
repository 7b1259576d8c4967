"""Kinds of memory, binding, and how much may be allocated."""
