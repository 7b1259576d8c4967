"""HBM as a device file: what a device-dax file is, which processes use it, and arenas on it."""
