"""The hosts of a communicator: their ranks, their leaders, and which of them are alive."""
