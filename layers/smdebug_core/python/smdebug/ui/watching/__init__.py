"""The runs that a server watches: the list, their verdicts, and what is kept of them."""
