"""A rule's memory between steps, as bytes."""
