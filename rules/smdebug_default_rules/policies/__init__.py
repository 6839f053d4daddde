"""Rules on policies that learn from rewards or preferences, by the numbers that their trainers log."""
