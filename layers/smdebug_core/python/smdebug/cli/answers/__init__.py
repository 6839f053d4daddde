"""How commands answer: text, tables, JSON, progress and warnings."""
