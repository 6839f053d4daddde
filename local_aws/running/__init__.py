"""How a function is run: processes under AWS's own client, their pools and logs."""
