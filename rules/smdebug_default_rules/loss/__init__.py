"""Rules about the loss and what it says of the training."""
