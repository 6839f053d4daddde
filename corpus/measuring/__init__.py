"""Recording the programs, judging the runs, and counting what the rules said."""
