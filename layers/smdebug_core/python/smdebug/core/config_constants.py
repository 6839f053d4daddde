"""For code written against smdebug: the constants live in `smdebug.config.constants`."""

from smdebug.config.constants import *
