"""Figures of cost models: how well they fit, and what they say of other machines."""
