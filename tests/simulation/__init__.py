"""The real handlers under a scheduler that interleaves, kills and repeats calls, and loses messages."""
