"""Programs of others: IMB."""
