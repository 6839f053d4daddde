"""What the application costs, counted from its own calls."""
