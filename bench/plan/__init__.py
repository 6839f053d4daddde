"""What the default plan adds to a training."""
