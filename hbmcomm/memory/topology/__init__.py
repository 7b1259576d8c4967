"""What the kernel says of this machine: nodes, distances, bandwidths, HBM."""
