"""The hook where everything goes wrong, at every call in turn."""
