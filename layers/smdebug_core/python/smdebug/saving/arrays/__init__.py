"""What saving needs of a framework's tensors: arrays, copies, measurements, updates."""
