"""One file per figure; each takes findings (DataFrames and plain values) and returns drawings."""
