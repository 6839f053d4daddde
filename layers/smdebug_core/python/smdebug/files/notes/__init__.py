"""What a run says of itself beside its steps: where it comes from, where its checkpoints are."""
