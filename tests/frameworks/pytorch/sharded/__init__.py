"""Parameters that are sharded over ranks: what is measured of the parts, and of the whole."""
