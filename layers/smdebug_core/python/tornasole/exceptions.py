"""For code written against tornasole: the exceptions live in `smdebug.exceptions`."""

from smdebug.exceptions import *
