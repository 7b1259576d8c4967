"""What the library offers; see DESIGN in README.md."""
