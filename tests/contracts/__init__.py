"""What several rooms promise together."""
