"""Commands that query a deployed debugger, or stop a training."""
