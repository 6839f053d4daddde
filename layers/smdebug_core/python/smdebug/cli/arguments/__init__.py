"""What several commands take: runs, rules, tensors, and their completion."""
