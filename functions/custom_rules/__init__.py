"""Rules that users bring: claimed by a trusted function, run by one that is not, committed by a third."""
