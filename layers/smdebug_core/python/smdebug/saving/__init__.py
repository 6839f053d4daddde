"""What a training tells of its tensors, written where readers and rules find it."""
