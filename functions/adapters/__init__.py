"""The other side of the ports: AWS, and the same in memory. The only clients of AWS are here."""
