"""A campaign, from its experiment to its stored launches."""
