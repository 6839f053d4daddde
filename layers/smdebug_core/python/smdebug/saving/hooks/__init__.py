"""What users call: hooks, their options, and the hook of this process."""
