"""Rules about layers and what they give."""
