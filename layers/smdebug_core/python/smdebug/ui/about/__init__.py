"""What the page shows of a whole run: where it comes from, inputs in findings, how workers differ, costs."""
