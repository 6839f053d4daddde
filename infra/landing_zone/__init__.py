"""What a landing zone asks of every resource: boundaries, paths, names and tags."""
