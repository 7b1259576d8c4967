"""The image: its base, its layers, its removal."""
