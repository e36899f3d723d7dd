// The neighbourhood of a vertex, walked hop by hop: a click on a vertex brings its neighbours in.
//
// What is in the picture keeps its place, and newcomers grow around the vertex that brought them, so
// that the eye can follow. Where there would be more than `MOST`, those go that came first.

import { step } from "./forces.js";
import { json } from "./net.js";
import { element, number, plural, svgElement, wordOf } from "./words.js";

const MOST = 90;
const SHOWN = 36; // neighbours of one vertex
const [COOLING, COLD] = [0.975, 0.02]; // heat after each step, and at rest
const STEPS = Math.log(COLD) / Math.log(COOLING);
const REST_MS = 1800;
// Core numbers from low to high: viridis, whose lightness rises evenly, for any eyes.
const SCALE = ["#482475", "#3e4a89", "#2f6c8e", "#1f9a8a", "#48c16e", "#a5db36", "#fde725"];

const svg = document.getElementById("graph");
const said = document.getElementById("walk-said");
const still = matchMedia("(prefers-reduced-motion: reduce)");

const nodes = new Map(); // by word: {word, x, y, core, degree, hop, …}
let links = []; // {a, b}
let trail = []; // words, from the first to where we are
let heat = 0;
let turned = 0; // radians
let widest = 1; // the highest core number seen

// Asked for --------------------------------------------------------------------------------------------

export async function show(word, fresh = true) {
  said.textContent = "Looking…";
  const path = word === null ? "" : `/${encodeURIComponent(word)}`;
  let found;
  try {
    found = await json(`/v1/page/neighborhood${path}?limit=${svg.clientWidth < 500 ? SHOWN / 2 : SHOWN}`);
  } catch (error) {
    said.textContent = error.message;
    return;
  }
  const center = wordOf(found.ids[0]);
  if (fresh) {
    nodes.clear();
    links = [];
    trail = [];
  }
  const at = trail.indexOf(center);
  trail = at >= 0 ? trail.slice(0, at + 1) : [...trail, center];
  take(found, center);
  drop();
  draw();
  const shown = found.ids.length - 1;
  const rest = found.neighbors > shown ? `, ${shown} of them shown` : "";
  said.textContent = `${center}: ${plural(found.neighbors, "neighbour")}${rest}; version ${number(found.version)}`;
  document.getElementById("walk-vertex").value = center;
  settle();
}

function take(found, center) {
  const words = found.ids.map(wordOf);
  const origin = nodes.get(center) ?? { x: 0, y: 0 };
  words.forEach((word, i) => {
    const angle = i * 2.399963; // the golden angle: evenly around
    const from = i === 0 ? 0 : 40 + 6 * Math.sqrt(i);
    const fresh = { word, x: origin.x + from * Math.cos(angle), y: origin.y + from * Math.sin(angle), hop: 0 };
    const node = nodes.get(word) ?? fresh;
    Object.assign(node, { core: found.core[i], degree: found.degree[i], seen: trail.length });
    nodes.set(word, node);
    widest = Math.max(widest, found.core[i] ?? 0);
  });
  const known = new Set(links.map(({ a, b }) => `${a.word}\n${b.word}`));
  for (const [i, j] of found.edges) {
    const [a, b] = [nodes.get(words[i]), nodes.get(words[j])];
    if (!known.has(`${a.word}\n${b.word}`)) links.push({ a, b });
  }
}

// Leave out what came first and is not on the way.
function drop() {
  const old = [...nodes.values()].filter((node) => !trail.includes(node.word)).sort((a, b) => a.seen - b.seen);
  for (const node of old.slice(0, Math.max(0, nodes.size - MOST))) nodes.delete(node.word);
  links = links.filter(({ a, b }) => nodes.has(a.word) && nodes.has(b.word));
}

// Drawn --------------------------------------------------------------------------------------------------

function colorOf(core) {
  if (core === null || core === undefined) return "var(--wait)";
  return shade(Math.min(SCALE.length - 1, Math.floor((core / (widest + 1)) * SCALE.length)));
}

// The high ones stand out from the paper: dark on light, light on dark.
function shade(i) {
  return `light-dark(${SCALE[SCALE.length - 1 - i]}, ${SCALE[i]})`;
}

function draw() {
  const focused = document.activeElement?.dataset?.word;
  const here = trail.at(-1);
  const near = new Set(links.filter((l) => l.a.word === here || l.b.word === here).flatMap((l) => [l.a.word, l.b.word]));
  for (const link of links) {
    link.line = svgElement("line", link.a.word === here || link.b.word === here ? { class: "near" } : {});
  }
  for (const node of nodes.values()) {
    // Of whom the name is shown, if there is room: the way here, then the neighbours.
    node.named = trail.includes(node.word) ? Infinity : near.has(node.word) ? 1 + node.degree : 0;
    const core = node.core === null ? "" : `, core number ${node.core}`;
    node.group = svgElement("g", {
      tabindex: node.word === here ? 0 : -1, role: "button", "data-word": node.word,
      "aria-label": `${node.word}${core}, degree ${number(node.degree)}: show its neighbours`,
      class: node.word === here ? "center" : "",
    });
    const title = svgElement("title", {});
    title.textContent = `${node.word}${core}, degree ${number(node.degree)}`;
    node.text = svgElement("text", {});
    node.text.textContent = node.word.length > 24 ? `${node.word.slice(0, 23)}…` : node.word;
    node.circle = svgElement("circle", {});
    node.circle.style.fill = colorOf(node.core);
    node.group.append(node.circle, node.text, title);
  }
  const centerLast = [...nodes.values()].sort((a, b) => a.named - b.named);
  svg.replaceChildren(...links.map((link) => link.line), ...centerLast.map((node) => node.group));
  if (focused !== undefined) focus(nodes.get(focused) ?? nodes.get(here));
  document.getElementById("trail").replaceChildren(...trail.map((word) =>
    element("li", {}, element("button", { type: "button", class: "quiet", onclick: () => show(word, false) }, word))));
  legend();
  place();
}

function legend() {
  const step = (widest + 1) / SCALE.length;
  const of = (i) => {
    const [low, high] = [Math.ceil(i * step), Math.ceil((i + 1) * step) - 1];
    const dot = svgElement("svg", { width: 12, height: 12, "aria-hidden": "true" });
    const circle = svgElement("circle", { cx: 6, cy: 6, r: 5.5 });
    circle.style.fill = shade(i);
    dot.append(circle);
    return low > high ? null : element("span", {}, dot, low === high ? String(low) : `${low}–${high}`);
  };
  const parts = SCALE.map((_, i) => of(i)).filter((part) => part !== null);
  document.getElementById("legend").replaceChildren("Core number", ...parts, element("span", {}, "larger: higher degree"));
}

// The picture is as large as its contents need, within the frame, and lies along its longer side.
function place() {
  const [width, height] = [svg.clientWidth || 600, svg.clientHeight || 400];
  const all = [...nodes.values()];
  if (!all.length) return;
  turn(all, width >= height ? 0 : Math.PI / 2);
  const [cos, sin] = [Math.cos(turned), Math.sin(turned)];
  for (const node of all) [node.sx, node.sy] = [node.x * cos + node.y * sin, node.y * cos - node.x * sin];
  const [xs, ys] = [all.map((node) => node.sx), all.map((node) => node.sy)];
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const scale = Math.min(2.2, (width - 90) / Math.max(1, right - left), (height - 76) / Math.max(1, bottom - top));
  const size = Math.min(1, Math.max(0.4, scale * (width < 500 ? 0.8 : 1)));
  for (const node of all) {
    node.sx = width / 2 + (node.sx - (left + right) / 2) * scale;
    node.sy = height / 2 + 6 + (node.sy - (top + bottom) / 2) * scale;
    node.radius = size * Math.min(20, 4 + 2 * Math.log2(1 + node.degree));
    node.circle.setAttribute("r", node.radius.toFixed(1));
    node.text.setAttribute("dy", (-node.radius - 5).toFixed(1));
    node.group.setAttribute("transform", `translate(${node.sx.toFixed(1)} ${node.sy.toFixed(1)})`);
  }
  label(all);
  for (const { a, b, line } of links) {
    line.setAttribute("x1", a.sx.toFixed(1));
    line.setAttribute("y1", a.sy.toFixed(1));
    line.setAttribute("x2", b.sx.toFixed(1));
    line.setAttribute("y2", b.sy.toFixed(1));
  }
}

// Turn the picture, little by little, until its widest direction is the frame's.
function turn(all, along) {
  const [mx, my] = [all.reduce((sum, n) => sum + n.x, 0) / all.length, all.reduce((sum, n) => sum + n.y, 0) / all.length];
  let [xx, xy, yy] = [0, 0, 0];
  for (const { x, y } of all) {
    xx += (x - mx) ** 2;
    xy += (x - mx) * (y - my);
    yy += (y - my) ** 2;
  }
  const goal = Math.atan2(2 * xy, xx - yy) / 2 - along;
  const off = goal - turned - Math.PI * Math.round((goal - turned) / Math.PI); // an axis has two ends
  turned += still.matches ? off : 0.12 * off;
}

// The names that fit: where two would overlap, that of the vertex with the higher degree.
function label(all) {
  const taken = [];
  for (const node of all.toSorted((a, b) => (b.named ?? 0) - (a.named ?? 0))) {
    const half = 3.6 * Math.min(24, node.word.length);
    const top = node.sy - node.radius - 18;
    const fits = node.named && taken.every(([x, y, width]) => Math.abs(x - node.sx) > half + width || Math.abs(y - top) > 14);
    if (fits) taken.push([node.sx, top, half]);
    node.group.classList.toggle("named", Boolean(fits));
  }
}

// Forces ---------------------------------------------------------------------------------------------------

function settle() {
  const wasStill = heat <= COLD;
  heat = 1;
  if (still.matches) {
    while (heat > COLD) cool();
    place();
  } else if (wasStill) requestAnimationFrame(frame);
}

function cool() {
  step([...nodes.values()], links, heat);
  heat *= COOLING;
}

// As many steps as bring it to rest within about `REST_MS`, however slow the frames are.
function frame(now) {
  const passed = Math.min(200, now - (frame.last ?? now - 16));
  frame.last = now;
  for (let i = 0; i < Math.max(1, Math.round((STEPS * passed) / REST_MS)); i += 1) cool();
  place();
  if (heat > COLD) requestAnimationFrame(frame);
  else frame.last = undefined;
}

// Hands ----------------------------------------------------------------------------------------------------

function wordAt(target) {
  return target.closest("g[data-word]")?.dataset.word;
}

svg.addEventListener("click", (event) => {
  const word = wordAt(event.target);
  if (word !== undefined) show(word, false);
});

const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

svg.addEventListener("keydown", (event) => {
  const word = wordAt(event.target);
  if (word === undefined) return;
  if (event.key === "Enter" || event.key === " ") show(word, false);
  else if (ARROWS[event.key]) focus(next(nodes.get(word), ARROWS[event.key]) ?? nodes.get(word));
  else return;
  event.preventDefault();
});

// One vertex is reached by Tab, the others from it by arrow keys.
function focus(node) {
  for (const each of svg.querySelectorAll("g[tabindex='0']")) each.setAttribute("tabindex", -1);
  node.group.setAttribute("tabindex", 0);
  node.group.focus();
}

// The nearest vertex that way, sideways counting double.
function next(from, [x, y]) {
  let [best, least] = [null, Infinity];
  for (const node of nodes.values()) {
    const [dx, dy] = [node.sx - from.sx, node.sy - from.sy];
    const along = dx * x + dy * y;
    const cost = along + 2 * Math.abs(dx * y - dy * x);
    if (along > 1 && cost < least) [best, least] = [node, cost];
  }
  return best;
}

document.getElementById("walk-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const word = document.getElementById("walk-vertex").value.trim();
  show(word === "" ? null : word);
});

new ResizeObserver(place).observe(svg);
