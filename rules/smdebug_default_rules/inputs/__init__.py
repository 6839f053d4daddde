"""Rules about inputs and labels."""
