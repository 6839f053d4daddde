"""The graphs that losses have for their backward passes, read before these free them."""
