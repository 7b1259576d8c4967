"""Emulated hosts: namespaces of this machine on a switch, with links of a rate."""
