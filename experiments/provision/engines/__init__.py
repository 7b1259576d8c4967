"""Container engines: found, started, stopped again."""
