"""Secrets are recognised and left out, and ordinary text stays as it is."""
