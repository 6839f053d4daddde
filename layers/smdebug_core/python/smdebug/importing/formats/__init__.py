"""One module for each format that is read: which files are its runs, and the values in them."""
