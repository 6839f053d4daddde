"""Where runs and the step index are stored."""
