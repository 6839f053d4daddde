"""A backtest in the user's account: a plan and a manifest go into the bucket, and verdicts come out of it."""
