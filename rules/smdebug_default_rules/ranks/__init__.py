"""Rules that compare the ranks of a training."""
