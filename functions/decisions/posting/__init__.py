"""What is posted to webhooks and tools, and what their answers ask for."""
