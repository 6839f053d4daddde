"""What `--json` prints: the form of each command's answer, and its JSON schema."""
