"""For code written against tornasole: refreshing lives in `smdebug.analysis.utils`."""

from smdebug.analysis.utils import no_refresh, parse_bool, parse_list_from_str, refresh

__all__ = ["no_refresh", "parse_bool", "parse_list_from_str", "refresh"]
