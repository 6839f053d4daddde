"""What others request of a training by an object beside its run: to stop, to zoom in."""
