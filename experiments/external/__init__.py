"""Programs in C that take part in a campaign as references: what they cost Python cannot."""
