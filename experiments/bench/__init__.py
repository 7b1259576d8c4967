"""hbmcomm against its peers on one machine: in one run, over the same buffers, interleaved."""
