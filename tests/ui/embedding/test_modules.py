"""ES modules joined into one script: each once, after what it imports; any other form is refused."""

from __future__ import annotations

import pytest

from smdebug.ui.embedding.modules import joined

MODULES = {
    "a.js": 'import { b as c } from "./b.js";\nimport plot from "./far/plot.js";\nplot(c);\n',
    "b.js": 'import { d } from "./d.js";\nexport const b = d + 1;\n',
    "d.js": "export const d = 1;\nexport function unused() {}\nexport class Shape {}\n",
    "far/plot.js": 'import { d } from "../d.js";\nfunction p() {}\nexport { p as default };\n',
}


def test_each_module_is_there_once_after_those_that_it_imports():
    modules = {**MODULES, "far/plot.js": MODULES["far/plot.js"].replace("../d.js", "./../d.js")}
    script = joined("a.js", modules.__getitem__)
    places = [script.index(f"const ${name} = ") for name in ("d_js", "b_js", "far_plot_js", "a_js")]
    assert places == sorted(places)
    assert script.count("const $d_js = ") == 1
    assert "return { d: d, unused: unused, Shape: Shape };" in script
    assert "const { b: c } = $b_js;" in script
    assert "const { default: plot } = $far_plot_js;" in script
    assert "return { default: p };" in script


def test_comments_are_left_out_as_they_may_hold_exports():
    script = joined("a.js", {"a.js": "/* old\nexport function gone() {}\n*/\nexport const a = 1;"}.get)
    assert "gone" not in script
    assert "return { a: a };" in script


@pytest.mark.parametrize(
    "source",
    [
        'import "./b.js";',
        'const { b } = await import("./b.js");',
        'export * from "./b.js";',
        'import { b } from "https://example.org/b.js";',
        "const here = import.meta.url;",
    ],
)
def test_other_forms_are_refused(source):
    with pytest.raises(ValueError, match="cannot be joined"):
        joined("a.js", {"a.js": source, "b.js": "export const b = 1;"}.__getitem__)


def test_modules_that_import_each_other_are_refused():
    modules = {
        "a.js": 'import { b } from "./b.js";\nexport const a = 1;',
        "b.js": 'import { a } from "./a.js";\nexport const b = 1;',
    }
    with pytest.raises(ValueError, match="import each other"):
        joined("a.js", modules.__getitem__)
