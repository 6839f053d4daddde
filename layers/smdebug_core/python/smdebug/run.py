"""Run a training script with a hook in it, unchanged: `python -m smdebug.run train.py …`."""

from smdebug.launching.scripts import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
