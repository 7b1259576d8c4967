"""What a campaign stores, and the versions of its format."""
