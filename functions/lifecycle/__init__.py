"""The life of a run: its beginning, its silences, the checks on its evaluation, its end and summary."""
