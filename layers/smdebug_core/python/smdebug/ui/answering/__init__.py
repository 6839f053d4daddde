"""What the server answers to each request."""
