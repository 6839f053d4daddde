"""What a training offers, taken step by step and handed to the run's writer."""
