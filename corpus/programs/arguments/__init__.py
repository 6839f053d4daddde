"""Trainings in which an argument or a call is wrong or forgotten, and no error says so."""
