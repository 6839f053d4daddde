"""What the default plan observes of a step."""
