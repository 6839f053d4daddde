"""The hook for MXNet's Gluon, whose last release was in 2022: `import smdebug.mxnet` is its address."""
