"""Which modes a rule looks at."""
