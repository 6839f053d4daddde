"""Steps on their way to the storage: queued, written in the background, accounted for."""
