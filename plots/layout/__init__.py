"""Names, colours and the page that a figure is drawn on."""
