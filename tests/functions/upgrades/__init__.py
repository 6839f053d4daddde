"""Two releases on the same runs: today's handlers go on with what an earlier one has left behind."""
