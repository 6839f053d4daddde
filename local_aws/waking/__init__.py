"""What wakes functions: deliveries and queues."""
