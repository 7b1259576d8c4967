"""A call of the core, the requests and the plans that it makes."""
