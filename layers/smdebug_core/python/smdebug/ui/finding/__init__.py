"""Finding the runs in the given places, and a first glance at each."""
