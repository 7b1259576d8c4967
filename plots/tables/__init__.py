"""Tables: CSV, LaTeX, HTML."""
