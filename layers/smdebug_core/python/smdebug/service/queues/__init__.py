"""Queues that the deployed debugger has for programs of the user's own."""
