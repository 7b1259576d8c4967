"""Pushes of tensors from the rank that computes them to the rank that reads them."""
