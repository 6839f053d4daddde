"""How a new release of a function takes over the work of the one before it."""
