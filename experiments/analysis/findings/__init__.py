"""What a campaign found, as typed values and data frames. Words nothing, draws nothing."""
