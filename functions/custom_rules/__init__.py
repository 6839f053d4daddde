"""Custom rules: claimed by a trusted function, run by an untrusted one, committed by a third."""
