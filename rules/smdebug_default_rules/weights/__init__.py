"""Rules about parameters, and what steps change of them."""
