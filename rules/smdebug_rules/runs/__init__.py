"""Rules about a run as a whole."""
