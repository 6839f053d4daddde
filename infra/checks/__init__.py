"""The checks of the settings, which return what is wrong, and the kinds of their values."""
