"""From the findings of a run to one diagnosis: causes, and their symptoms beneath them."""
