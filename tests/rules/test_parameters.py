from __future__ import annotations

import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.parameters import boolean, integer, number, numbers, patterns, strings


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, []),
        ("", []),
        ("a", ["a"]),
        (" a , b,", ["a", "b"]),
        (["a,b"], ["a,b"]),
        (("a", " b "), ["a", "b"]),
        ('["a{1,2}", "b"]', ["a{1,2}", "b"]),
        ("[Ll]oss", ["[Ll]oss"]),
    ],
)
def test_a_list_is_a_list_or_json_or_text_with_commas(given, expected):
    assert strings("names", given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("loss, a{1,2}", ["loss", "a{1,2}"]),
        ("(a,b)c,[d,e]", ["(a,b)c", "[d,e]"]),
        (r"a\,b", [r"a\,b"]),
        ("[1]", ["[1]"]),
        ('["a,b"]', ["a,b"]),
        (["a,b"], ["a,b"]),
        (None, []),
    ],
)
def test_a_comma_within_brackets_belongs_to_the_pattern(given, expected):
    assert patterns("names", given) == expected


@pytest.mark.parametrize("given", ["1, 2.5", "[1, 2.5]", '["1", "2.5"]', "(1, 2.5)", [1, "2.5"], (1, 2.5)])
def test_numbers_are_a_list_or_json_or_text_with_commas(given):
    assert numbers("names", given) == [1, 2.5]


@pytest.mark.parametrize(
    ("given", "expected"),
    [(True, True), ("True", True), ("true", True), ("False", False), ("0", False)],
)
def test_a_boolean_may_be_text(given, expected):
    assert boolean("flag", given) is expected


@pytest.mark.parametrize(("given", "expected"), [("3", 3), (3, 3), (3.0, 3), ("3.0", 3), (" 7 ", 7)])
def test_a_whole_number_may_be_text(given, expected):
    assert integer("n", given) == expected


def test_a_large_whole_number_is_exact():
    assert integer("n", str(2**62 + 1)) == 2**62 + 1


@pytest.mark.parametrize(
    ("parse", "given", "complaint"),
    [
        (boolean, "maybe", "flag must be True or False, not 'maybe'"),
        (boolean, None, "flag must be True or False"),
        (number, "much", "flag must be a number, not 'much'"),
        (number, None, "flag must be a number"),
        (number, "nan", "flag must be a number, not NaN"),
        (integer, "3.5", "flag must be a whole number"),
        (integer, "inf", "flag must be a whole number"),
        (strings, 5, "flag must be a list of strings"),
        (strings, "[1, 2]", "flag must be a list of strings"),
        (numbers, "[1, [2]]", r"flag must be a number, not \[2\]"),
        (numbers, "1, two", "flag must be a number, not 'two'"),
        (patterns, 5, "flag must be one regex or a list of them"),
        (patterns, "a(", "flag: The pattern 'a\\(' is not a valid regex"),
        (patterns, "a{1,2}(", "write the list as JSON"),
        (patterns, "(a+)+$", "flag: The pattern .* could take forever"),
    ],
)
def test_what_cannot_be_parsed_is_named(parse, given, complaint):
    with pytest.raises(SMDebugValueError, match=complaint):
        parse("flag", given)


def test_limits_are_named():
    with pytest.raises(SMDebugValueError, match="p must be at most 100, not 101"):
        number("p", "101", minimum=0, maximum=100)
    with pytest.raises(SMDebugValueError, match="n must be at least 1, not 0"):
        integer("n", "0", minimum=1)
