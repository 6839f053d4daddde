"""Computing again what a training has computed, to compare it."""
