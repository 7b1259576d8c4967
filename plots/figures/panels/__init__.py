"""What the panels of several figures share: which there are, their axes and their marks."""
