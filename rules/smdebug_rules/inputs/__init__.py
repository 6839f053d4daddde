"""Rules about inputs."""
