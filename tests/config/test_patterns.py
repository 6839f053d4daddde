from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.config.backtracking import explosive
from smdebug.config.patterns import compiled, matches_any, searcher
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

ORDINARY = [
    ".*relu_output",
    "(?:a|b)*c",
    ".*tanh_input|.*sigmoid_input",
    "^(?!gradient).*weight",
    "relu|tanh",
    "[Ll]oss_(?!input).*output",
    "^[a-zA-z]+-.+(?<!(auc|map))$",
    ".*.*",
    "(ab)*",
    "(a*b)*",
    "(a|ab)",
    "(foo)+bar",
    "^weights/.*/((?!bias).)*$",
    "^average_shap/.*[^/bias]$",
    "(relu|sigmoid|softmax)*",
    "(\\w+\\.)*weight",
    "(?:layer\\d+/)+kernel",
    ".*conv.*weight.*bias.*",
    "([a-z]{2})*",
    "(conv|bn)_\\d+(_\\d+)*$",
    "^(\\w+/)*\\w+:\\d+$",
    "a{2,5}",
    "(a{1,3}b)+",
    "(.+)_(\\d+)",
    "(?i)(relu|RELU2)",
    ".*?weight.*?",
    "(a)?(b)?(c)?",
    "(^|/)bias($|:)",
    "(.*/)?kernel:0",
    "(.*)(.*)",
    "(\\d+,)*\\d+",
    "(?P<x>a)(?P=x)*",
    "([^/]+/)*x",
    "^(?:[^/]+/){0,3}loss",
    "(?s:.)+",
    "^[a-zA-Z0-9]+(-[a-zA-Z0-9]+)+$",
    ".*loss._(?!input).*output",
    "(?>a+)b",
    "a++b",
    "(a)?(?(1)b|c)",
    "\\bw\\b",
]

EXPLOSIVE = [
    "(a+)+$",
    "(a*)*b",
    "(a|a)*$",
    "(a|aa)+$",
    "(\\w+\\s?)*$",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(.*)*x",
    "(.*,)*x",
    "(a+b?)+",
    "(a|a?)+$",
    "(.*a){20}",
    "((a|b)*)*c",
    "(?=(a+)+$)b",
    ".*.*.*.*x",
    "((ab)*|(ab)*)*c",
    "(x+x+)+y",
    "(a{1,30}){1,30}b",
    "(\\d+|[0-9]*)*z",
    "(?!(a+)+b)c",
    "(?:(?:a?){9})*b",
    "(?i)(a|bA|Ba|b)*x",
    "(a|(?:a))*c",
]


@pytest.mark.parametrize("pattern", ORDINARY)
def test_ordinary_patterns_are_accepted(pattern):
    assert compiled(pattern).pattern == pattern
    assert explosive(pattern) == ""


@pytest.mark.parametrize("pattern", EXPLOSIVE)
def test_patterns_that_could_take_forever_are_refused_before_they_are_used(pattern):
    with pytest.raises(SMDebugValueError, match="take forever") as error:
        compiled(pattern)
    assert pattern in str(error.value).replace("\\\\", "\\")


@pytest.mark.parametrize("pattern", ["(", "*a", "[", "(?P<1>x)", "a{99999999999999999999}", "(" * 2000])
def test_patterns_that_are_not_valid_are_refused_by_name(pattern):
    with pytest.raises(SMDebugValueError, match="not a valid regex"):
        compiled(pattern)


def test_deep_nesting_is_refused_or_works_but_never_an_error_of_pythons_own():
    for depth in range(0, 400, 7):
        pattern = "(" * depth + "a*" + ")" * depth
        try:
            assert compiled(pattern).search("a")
        except SMDebugValueError:
            assert depth > 50


def test_what_is_not_a_pattern_is_refused():
    with pytest.raises(SMDebugTypeError):
        compiled(7)  # type: ignore[arg-type]
    with pytest.raises(SMDebugValueError, match="characters"):
        compiled("a" * 200_000)


def test_a_long_list_of_names_is_an_ordinary_pattern():
    pattern = "|".join(f"layer_{number}/kernel:0" for number in range(500)) + "|(x)?"
    assert compiled(pattern).search("layer_7/kernel:0")


def test_a_name_matches_if_any_pattern_occurs_in_it():
    assert matches_any("conv/relu_output", ["tanh", "relu"])
    assert not matches_any("conv/relu_output", ["^relu"])
    assert not matches_any("conv/relu_output", [])


# Powers of the length of a name

POWERS = {
    ".*relu_output.*": 10**6,
    "^(?!gradient).*weight": 5000,
    ".*conv.*weight.*bias.*": 500,
    ".*layer.*attention.*self.*query.*weight.*": 200,
    "^(\\w+/)*\\w+:\\d+$": 500,
    "(a)?(b)?(c)?": 5000,
}


@pytest.mark.parametrize("pattern", POWERS)
def test_ordinary_patterns_are_tried_on_names_of_every_likely_length(pattern):
    assert not searcher(pattern)("." * POWERS[pattern]) or pattern.endswith("?")


@pytest.mark.parametrize(
    "pattern",
    [
        ".*a.*a.*a.*b",
        "a.*a.*a.*a.*a.*b",
        "(a.*){3}(?!b.*b.*b)c",
        "[a-z]*a[a-z]*a\\w*a[^/]*b",
        "\\w*(x|a)\\w*(y|a)\\w*a\\w*!",
        "a?" * 40 + "a" * 40,
    ],
)
def test_a_name_on_which_a_pattern_would_take_long_is_refused(pattern):
    with pytest.raises(SMDebugValueError, match=r"could take very long on names .* has 2000\. Write"):
        searcher(pattern)("a" * 2000)


def test_the_ends_of_a_pattern_cost_nothing_where_they_are_open():
    assert searcher(".*x.*")("a" * 10**6 + "x")
    assert not searcher(".*x.*")("a" * 10**6)
    assert searcher("x\\.*")("x...")
    assert searcher(".*?x")("ax")
    assert not searcher(".*+x")("ax")
    assert searcher(".*a|b.*")("b")
    assert searcher(".*")("")


pieces = st.sampled_from(
    ["a", "b", ".", "[ab]", "\\w", "(", ")", "(?:", "|", "*", "+", "?", "{1,2}", "^", "$"]
)


@given(st.lists(pieces, max_size=14).map("".join))
def test_a_pattern_that_is_accepted_ends_soon_on_text_that_does_not_match(pattern):
    try:
        ready = compiled(pattern)
    except SMDebugValueError:
        return
    # 2²⁶ ways would be noticed; a few powers of 26 are not.
    for text in ("a" * 26 + "!", "ab" * 13 + "!", "b" * 26 + "!"):
        ready.search(text)
        ready.fullmatch(text)


@given(st.lists(pieces, max_size=14).map("".join), st.integers(1, 3000))
def test_a_name_that_a_pattern_is_tried_on_is_told_soon_and_rightly(pattern, length):
    for name in ("a" * length + "!", ("ab" * length)[:length] + "!"):
        try:
            found = searcher(pattern)(name)
        except SMDebugValueError:
            continue
        assert bool(found) == bool(re.search(pattern, name))


@given(st.text(max_size=20))
def test_any_text_is_accepted_or_refused_for_a_reason(text):
    try:
        assert compiled(text).pattern == text
    except SMDebugValueError:
        return
    re.compile(text)
