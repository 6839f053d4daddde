"""A run as of one of its steps, looked up instead of listed."""
