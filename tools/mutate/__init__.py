"""Edits the code on purpose and runs the tests of its room: an edit that none notices is a hole in them."""
