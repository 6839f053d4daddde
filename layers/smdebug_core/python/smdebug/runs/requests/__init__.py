"""Requests to a training in progress: to stop, or to save whole tensors."""
