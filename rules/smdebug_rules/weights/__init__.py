"""Rules about weights."""
