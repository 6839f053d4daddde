"""Rules about the activations of layers."""
