"""`make verdicts`: what the default rules say of healthy programs and of faults with known causes."""
