"""What rules say of each case."""
