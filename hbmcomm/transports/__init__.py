"""Transports: how a collective moves data, and what their calls are made of."""
