"""The default rules: they evaluate a run for which no rules are named.

They read what the default plan saves: statistics, facts and the loss of every step. The catalog lists them
in order and can be read without loading one.
"""
