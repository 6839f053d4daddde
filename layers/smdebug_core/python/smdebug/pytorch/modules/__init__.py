"""The modules of a model: their names, layers, activations and losses."""
