"""The template and its assets, synthesized for this machine, and what their deployment consists of."""
