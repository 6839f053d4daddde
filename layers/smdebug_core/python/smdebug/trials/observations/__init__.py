"""What a run saved under the default plan says of its steps."""
