"""How events travel: the queue of arrivals, the bus, dead letters."""
