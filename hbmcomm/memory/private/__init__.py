"""Arrays of one process: memkind, and NumPy's allocator."""
