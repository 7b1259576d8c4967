"""What cost models are held against: steps with emulated computation, trees between hosts."""
