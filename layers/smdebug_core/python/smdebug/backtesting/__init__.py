"""A rule over every run there ever was: which it would have stopped, when, and how many of them were fine.

A question and a chunk of runs go into `judge`, and rows come out; everything around it only divides the runs,
keeps the rows, and adds them up.
"""
