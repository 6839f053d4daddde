"""What the application in the cloud knows of runs, and how to ask it."""
