"""What this machine offers and lacks."""
