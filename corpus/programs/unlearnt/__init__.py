"""Trainings whose loss falls or stands while a part of the model learns nothing."""
