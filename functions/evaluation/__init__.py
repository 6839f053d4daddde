"""Evaluating a group of rules on a run, under a lease."""
