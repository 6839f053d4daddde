"""What follows an event on the bus: actions, messages to people, the report of a finished run."""
