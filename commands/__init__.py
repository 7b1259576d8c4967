"""What each task of tasks.py does: one function a task, called with its flags as plain values."""
