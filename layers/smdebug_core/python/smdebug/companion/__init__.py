"""The process beside a training that evaluates its rules while it trains (`evaluate="here"`).

It reads the run's own files, as a person with `smdebug watch` would, and shares nothing with the training.
"""
