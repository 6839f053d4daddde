"""Rules about single values."""
