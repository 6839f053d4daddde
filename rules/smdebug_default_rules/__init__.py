"""The default rules: they look at a run when nobody says which rules should.

They read what the default plan saves: statistics, facts and the loss of every step. The catalog lists them
in order and can be read without loading one.
"""
