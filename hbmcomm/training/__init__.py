"""Systems for training over several ranks: how gradients and parameters move between them.

Each module is one system on top of the transports; `networks` has the tensors of real models."""
