"""The Lambda handlers, one screen each: read the event, call what does the work, return its result."""
