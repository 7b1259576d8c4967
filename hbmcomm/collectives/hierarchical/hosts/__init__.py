"""The hosts of a communicator: who is on which, who leads, who is still there."""
