"""Commands that write reports, plots and exports."""
