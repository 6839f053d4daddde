"""What `make deploy` and `make take-over` ask of the account itself, before or beside the stack."""
