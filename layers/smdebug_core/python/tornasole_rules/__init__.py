"""An older name of smdebug: `smdebug/compatibility/addresses.py` lists what it offers."""

from smdebug.compatibility.finder import become_old_module

become_old_module(__name__)
