"""The image as a folder: programs that run it without an engine."""
