"""What a run has found and measured as plain records, and the tools that take them."""
