"""The server: its addresses, who may call them, and its start."""
