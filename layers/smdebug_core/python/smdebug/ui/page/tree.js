// The tensors of a network as a tree of modules, and which of its nodes are shown.

export class Node {
  constructor(name, path) {
    this.name = name;
    this.path = path;
    this.children = new Map();
    this.rows = [];
    this.open = false;
    /** The name of the tensor. @type {string | undefined} */
    this.full = undefined;
  }

  get isLeaf() {
    return this.children.size === 0;
  }
}

export const MOST_OPEN = 40; // rows that are shown before anything is folded or unfolded

const SEPARATORS = /[./]/;

export function treeOf(names) {
  const root = new Node("", "");
  names.forEach((name, row) => {
    let node = root;
    root.rows.push(row);
    const parts = name.split(SEPARATORS);
    parts.forEach((part, depth) => {
      const path = parts.slice(0, depth + 1).join("/");
      if (!node.children.has(path)) node.children.set(path, new Node(part || "·", path));
      node = node.children.get(path);
      node.rows.push(row);
    });
    node.full = name;
  });
  return root;
}

// Join modules that have a single child with it: `encoder/layer/0`.
function joined(node) {
  let name = node.name;
  while (node.children.size === 1) {
    const [child] = node.children.values();
    if (node.full !== undefined) break;
    node = child;
    name += `/${node.name}`;
  }
  return [name, node];
}

// The rows on the screen, from input to output: {name, depth, node, rows, leaf}.
export function shownRows(root) {
  const found = [];
  const visit = (node, depth) => {
    for (const each of node.children.values()) {
      const [name, child] = joined(each);
      found.push({ name, depth, node: child, rows: child.rows, leaf: child.isLeaf });
      if (child.open) visit(child, depth + 1);
    }
  };
  visit(root, 0);
  return found;
}

// Open modules from the outside to the inside, as long as there is room.
export function openFor(root, most) {
  let level = [...root.children.values()].map((each) => joined(each)[1]);
  let shown = level.length;
  while (level.length) {
    const inside = [];
    for (const node of level) {
      if (node.isLeaf || shown + node.children.size > most) continue;
      node.open = true;
      shown += node.children.size;
      inside.push(...[...node.children.values()].map((each) => joined(each)[1]));
    }
    level = inside;
  }
}

export function openAll(root, open) {
  for (const node of root.children.values()) {
    node.open = open && !node.isLeaf;
    openAll(node, open);
  }
}

// The paths of all open modules, also inside folded ones.
export function openPaths(root, found = new Set()) {
  for (const node of root.children.values()) {
    if (node.open) found.add(node.path);
    openPaths(node, found);
  }
  return found;
}

export function openThese(root, paths) {
  for (const node of root.children.values()) {
    node.open = !node.isLeaf && paths.has(node.path);
    openThese(node, paths);
  }
}

const BASES = {
  some: (tree) => openFor(tree, MOST_OPEN),
  all: (tree) => openAll(tree, true),
  none: () => {},
};
const MOST_LETTERS = 1500; // in an address

function opened(names, base) {
  const tree = treeOf(names);
  BASES[base](tree);
  return openPaths(tree);
}

// Which modules are open, as short as an address needs it: what most of them are, and those that are not so.
export function foldingOf(tree, names) {
  const open = openPaths(tree);
  const texts = Object.keys(BASES).map((base) => {
    const usual = opened(names, base);
    const others = [...open].filter((path) => !usual.has(path)).concat([...usual].filter((path) => !open.has(path)));
    return [base, ...others.map(encodeURIComponent)].join(",");
  });
  const shortest = texts.sort((a, b) => a.length - b.length)[0];
  return shortest === "some" || shortest.length > MOST_LETTERS ? "" : shortest;
}

// Open the modules of such a text; what it does not know stays as it is at first.
export function unfold(tree, text) {
  const [base, ...others] = text.split(",");
  (BASES[base] || BASES.some)(tree);
  const changed = new Set(
    others.map((each) => {
      try {
        return decodeURIComponent(each);
      } catch {
        return null; // an address that somebody wrote by hand
      }
    }),
  );
  const visit = (node) => {
    for (const child of node.children.values()) {
      if (!child.isLeaf && changed.has(child.path)) child.open = !child.open;
      visit(child);
    }
  };
  visit(tree);
}
