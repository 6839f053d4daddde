"""What a training logs to be looked at: images, text, tables, matrices, histograms and sound."""
