"""What a training has logged to be looked at: images, text, tables, matrices, histograms and sound."""
