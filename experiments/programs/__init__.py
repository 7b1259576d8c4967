"""What ranks run."""
