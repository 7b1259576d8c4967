"""Memory by kind: what there is, which of it is fast, and NumPy arrays that live in it."""
