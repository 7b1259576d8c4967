"""The workloads of each system: their names, contenders and bytes. Values only."""
