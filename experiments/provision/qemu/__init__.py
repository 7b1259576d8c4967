"""QEMU on this machine, and whether KVM works."""
