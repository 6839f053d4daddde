// What of a page can be read and touched: every text with its size and contrast, every target with its height.
(() => {
  const rgb = (colour) => {
    const numbers = colour.match(/[\d.]+/g).map(Number);
    return numbers.length < 4 ? [...numbers, 1] : numbers;
  };
  // The relative luminance and the contrast of WCAG 2.
  const linear = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const over = (a, b) => a.slice(0, 3).map((v, i) => v * a[3] + b[i] * (1 - a[3]));
  const behind = (element) => {
    const seen = [];
    for (let e = element; e; e = e.parentElement) {
      const colour = rgb(getComputedStyle(e).backgroundColor);
      if (colour[3] > 0) seen.push(colour);
      if (colour[3] === 1) break;
    }
    return seen.reduceRight((b, c) => over(c, b), [255, 255, 255]);
  };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim();
    if (!text || /^(SCRIPT|STYLE)$/.test(e.tagName) || !e.checkVisibility() || !e.getBoundingClientRect().width) continue;
    const style = getComputedStyle(e), ground = behind(e);
    const ink = over(rgb(e instanceof SVGElement ? style.fill : style.color), ground);
    const [dark, light] = [luminance(ink), luminance(ground)].sort((a, b) => a - b);
    const drawing = e.closest("svg");
    const scale = drawing ? drawing.getBoundingClientRect().width / drawing.viewBox.baseVal.width : 1;
    found.push({ text: text.slice(0, 30), size: scale * parseFloat(style.fontSize), contrast: (light + 0.05) / (dark + 0.05) });
  }
  const targets = [...document.querySelectorAll("a[href], summary, select, input")]
    .filter((e) => e.checkVisibility())
    .map((e) => ({ text: e.textContent.slice(0, 30), box: e.getBoundingClientRect() }))
    .filter((one) => one.box.width > 0 && one.box.right > 0)
    .map(({ text, box }) => ({ text, height: box.height, right: box.right }));
  return { texts: found, targets, wide: document.documentElement.scrollWidth };
})()
