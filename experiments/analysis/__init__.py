"""From stored samples to ratios, intervals and warnings."""
