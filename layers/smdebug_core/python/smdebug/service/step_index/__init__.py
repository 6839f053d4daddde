"""The step index as items of its table."""
