"""Training and validation apart: the lines of a scalar, on the axis of training steps."""
