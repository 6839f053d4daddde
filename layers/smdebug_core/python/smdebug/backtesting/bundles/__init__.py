"""Bundles: one object with the small files of a run, read by a backtest in place of thousands."""
