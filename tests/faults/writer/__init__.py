"""Schedules of faults under real hooks, and an oracle that knows what was handed to them."""
