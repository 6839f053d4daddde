"""Trainings of several ranks that make no progress."""
