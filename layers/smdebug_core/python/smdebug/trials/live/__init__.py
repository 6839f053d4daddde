"""A run that is followed by listing its files, also while it is written."""
