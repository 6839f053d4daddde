"""Secrets in text, values and command lines: recognised by name, place and form, and replaced by `***`.

It is a net, not a promise: a password that stands without a name, in no known form, looks like any word.
"""
