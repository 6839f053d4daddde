"""What to save, when, and of which tensors: the objects a user configures a hook with."""
