"""What ends and removes the leftovers of a killed campaign."""
