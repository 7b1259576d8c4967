"""Steps of deep learning over the process groups of torch.distributed."""
