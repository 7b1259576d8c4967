"""What a campaign found, as data frames: ratios, data paths, placements."""
