"""What was found, in sentences."""
