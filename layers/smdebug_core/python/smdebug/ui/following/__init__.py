"""Reading a run step by step, in this process and in others."""
