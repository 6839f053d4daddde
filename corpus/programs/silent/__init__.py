"""Faults that no error and often no loss shows: masks, experts, codes."""
