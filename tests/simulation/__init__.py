"""The real handlers under a scheduler that interleaves, kills, repeats, delays and loses calls and messages."""
