"""`make bench-ui`: the page of `smdebug ui` in headless Chromium, beside TensorBoard on the same values."""
