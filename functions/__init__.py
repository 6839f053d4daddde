"""The functions of the application: what happens between a PUT and an alert."""
