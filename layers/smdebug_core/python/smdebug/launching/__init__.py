"""Watching a training that names no hook: a script, or a process from one line on."""
