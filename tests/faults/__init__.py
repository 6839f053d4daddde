"""The hook on a storage that fails, at every call in turn."""
