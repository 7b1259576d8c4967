"""One launch at work: its processes, its containers, its end."""
