"""Systems of training as contenders: each program makes those of the workloads of one system."""
