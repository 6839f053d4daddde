"""What only code written for the old library uses.

`addresses` says where each of its modules and names lives now, `finder` makes `import` follow that table,
and the other modules hold what the library itself has no use for.
"""
