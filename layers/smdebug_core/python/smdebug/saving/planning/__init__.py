"""What to save at which step: pure decisions."""
