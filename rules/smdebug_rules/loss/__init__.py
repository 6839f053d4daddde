"""Rules about the loss."""
