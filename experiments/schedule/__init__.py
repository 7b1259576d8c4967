"""Which launches run together, in which order, and what memory they need. Pure."""
