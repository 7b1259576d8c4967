"""Allreduce of gradients: fused, tensor by tensor, while a step computes, by algorithm."""
