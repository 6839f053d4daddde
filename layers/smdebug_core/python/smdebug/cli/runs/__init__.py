"""Commands about runs in a folder or bucket."""
