"""The place of a run: who writes there, as which attempt, and from where it comes."""
