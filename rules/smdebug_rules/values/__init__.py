"""Rules about the values of any tensor."""
