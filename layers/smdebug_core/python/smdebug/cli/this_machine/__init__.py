"""Commands about this machine, and the application on it."""
