"""Trainings of the launchers of large models, with the packages themselves."""
