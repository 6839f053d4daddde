"""What the default plan observes of a training with PyTorch."""
