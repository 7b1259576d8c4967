"""HBM as a device file: what a device-dax file is, who uses it, and arenas on it."""
