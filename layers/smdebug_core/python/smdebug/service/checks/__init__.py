"""Checks of a live stack and of what is deployed to it."""
