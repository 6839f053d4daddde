"""Hooks: they save the tensors of a training for readers and rules."""
