"""Rules about labels and predictions."""
