"""Where PyTorch calls the hook: modules, backward passes, optimizers."""
