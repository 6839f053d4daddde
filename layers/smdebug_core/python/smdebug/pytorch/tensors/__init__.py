"""Tensors of PyTorch as arrays and as rows of numbers, computed where they lie."""
