"""The programs: healthy trainings, and faults with their healthy twins."""
