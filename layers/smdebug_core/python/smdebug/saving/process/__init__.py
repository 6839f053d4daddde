"""What a hook knows of the process that trains, and the one that it starts beside it."""
