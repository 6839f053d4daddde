"""What is uploaded: the layer, the folders of the functions, their fingerprints."""
