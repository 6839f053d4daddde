"""For code written against tornasole: the exceptions of `smdebug.exceptions`, the same classes."""

from smdebug.exceptions import *
