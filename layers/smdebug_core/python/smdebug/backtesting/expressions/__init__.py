"""Rules that are expressions over series: parsed by their own grammar, computed for many runs at once."""
