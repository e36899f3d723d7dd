// Charts, drawn as SVG from arrays. A chart of time has a fixed range of x, so that a new point moves
// data and no axis; its range of y changes in round steps. Colours are those of the style sheet, so a
// theme changes them.

import { number, short, svgElement } from "./words.js";

const POINTS = 240; // across a chart of time, however long that is
const DECADES = Array.from({ length: 15 }, (_, i) => 10 ** (i - 4));
const [LEFT, RIGHT, TOP, BOTTOM, LABEL] = [46, 12, 8, 20, 15]; // px around what is drawn

// In the next frame -----------------------------------------------------------------------------------

function schedule(chart) {
  if (chart.waits || !chart.data || !chart.host.clientWidth) return;
  chart.waits = true;
  requestAnimationFrame(() => {
    chart.waits = false;
    chart.draw();
  });
}

const resized = new ResizeObserver((entries) => entries.forEach(({ target }) => schedule(target.chart)));

// What all charts have in common --------------------------------------------------------------------

// From the values of an axis {from, to, log} to pixels between two ends.
function scale({ from, to, log }, start, end) {
  const place = log ? Math.log10 : (value) => value;
  const step = (end - start) / (place(to) - place(from));
  return (value) => start + (place(value) - place(from)) * step;
}

function mark(tag, attributes, color) {
  const made = svgElement(tag, attributes);
  made.style.color = `var(${color})`;
  return made;
}

function words(x, y, anchor, text) {
  const made = svgElement("text", { x, y, "text-anchor": anchor });
  made.textContent = text;
  return made;
}

// [value, text] of each tick that lies on an axis.
const ticks = (values, said, { from, to }) => values.filter((v) => v >= from && v <= to).map((v) => [v, said(v)]);

class Chart {
  constructor(id, options) {
    this.host = document.getElementById(id);
    this.host.chart = this;
    this.host.setAttribute("role", "img");
    this.say(this.host.closest("figure").querySelector("h3").textContent);
    Object.assign(this, options, { waits: false, data: null, svg: svgElement("svg", {}) });
    this.host.append(this.svg);
    resized.observe(this.host);
  }

  say(text) {
    this.host.setAttribute("aria-label", text);
  }

  show(data) {
    this.data = data;
    schedule(this);
  }

  // x, y: the axes, with their ticks; marks: gets their scales, and the bottom in pixels.
  render(x, y, marks) {
    const [width, height] = [this.host.clientWidth, this.host.clientHeight];
    const [right, bottom] = [width - RIGHT, height - BOTTOM - (this.xLabel ? LABEL : 0)];
    const [px, py] = [scale(x, LEFT, right), scale(y, bottom, TOP)];
    const line = (at, kind) => svgElement("line", { x1: LEFT, x2: right, y1: at, y2: at, class: kind });
    const parts = [
      ...y.ticks.flatMap(([value, text]) => [line(py(value), "grid"), words(LEFT - 6, py(value) + 4, "end", text)]),
      ...x.ticks.map(([value, text]) => words(px(value), bottom + 15, "middle", text)), line(bottom, "floor"),
    ];
    if (this.xLabel) parts.push(words((LEFT + right) / 2, height - 4, "middle", this.xLabel));
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren(...parts, ...marks(px, py, bottom));
  }
}

// A line, or two, over the last seconds --------------------------------------------------------------

export class TimeChart extends Chart {
  // log: a logarithmic axis, without an area; else it begins at 0 and reaches `least` at least.
  constructor(id, { colors, least, log }) {
    super(id, { colors, least, log, window: 120, drawn: 0, top: least });
  }

  setWindow(seconds) {
    this.window = seconds;
    schedule(this);
  }

  // data: {at: ms of each point, columns: [values, …]}. Drawn again once it has moved by half a point.
  show(data) {
    this.data = data;
    if (performance.now() - this.drawn > (this.window * 500) / POINTS) schedule(this);
  }

  draw() {
    const { at, columns, now } = this.data;
    const width = (this.window * 1000) / POINTS;
    this.drawn = performance.now();
    const begin = Math.ceil(now / width) - POINTS;
    const count = POINTS + 1;
    const made = columns.map(() => new Float64Array(count).fill(NaN));
    for (let k = at.length - 1; k >= 0; k -= 1) {
      const bucket = Math.floor(at[k] / width) - begin;
      if (bucket < 0) break;
      if (bucket >= count) continue;
      for (let c = 0; c < columns.length; c += 1) {
        const value = columns[c][k];
        if (value !== null && !(made[c][bucket] >= value)) made[c][bucket] = value;
      }
    }
    let [highest, lowest] = [0, Infinity];
    const hold = Math.max(2, Math.ceil(6000 / width)); // points may be seconds apart
    for (const column of made) {
      for (let i = 1, since = hold; i < count; i += 1) {
        if (!Number.isNaN(column[i])) since = 0;
        else if ((since += 1) <= hold) column[i] = column[i - 1];
        if (column[i] > highest) highest = column[i];
        if (column[i] < lowest) lowest = column[i];
      }
    }
    this.values = made;
    const place = (i) => Math.max(-this.window, Math.min(0, ((begin + i + 1) * width - now) / 1000));
    this.render(this.#xAxis(), this.log ? spanned(lowest, highest) : this.#reaching(highest), (px, py, bottom) =>
      made.flatMap((column, c) => this.#lines(column, c, (i) => px(place(i)).toFixed(1), (value) => py(value).toFixed(1), bottom)));
  }

  // The path of a column, which pauses where nothing is known, and the area below the first.
  #lines(column, c, px, py, bottom) {
    let [path, from] = ["", -1];
    const area = [];
    for (let i = 0; i <= column.length; i += 1) {
      const known = i < column.length && !Number.isNaN(column[i]);
      if (known) path += `${from < 0 ? "M" : "L"}${px(i)} ${py(column[i])}`;
      if (known && from < 0) from = i;
      if (known || from < 0) continue;
      const points = Array.from(column.slice(from, i), (value, k) => `L${px(from + k)} ${py(value)}`);
      if (!this.log) area.push(`M${px(from)} ${bottom}${points.join("")}L${px(i - 1)} ${bottom}Z`);
      from = -1;
    }
    const line = mark("path", { d: path, class: c ? "dashed" : "" }, this.colors[c]);
    return [...(area.length ? [mark("path", { d: area.join(""), class: "area" }, this.colors[c])] : []), line];
  }

  #xAxis() {
    const said = (s) => (s < 60 ? `${s} s` : s < 3600 ? `${s / 60} min` : `${s / 3600} h`);
    const steps = [0, 1, 2, 3, 4].map((i) => (-this.window * i) / 4);
    return { from: -this.window, to: 0, ticks: steps.map((t) => [t, t === 0 ? "now" : `−${said(-t)}`]) };
  }

  // From 0 to a round number above the highest value; it falls only when much room is left, so that
  // the axis keeps still.
  #reaching(highest) {
    const least = Math.max(highest * 1.08, this.least);
    const unit = 10 ** Math.floor(Math.log10(least));
    const factor = [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((each) => each * unit >= least);
    if (factor * unit > this.top || factor * unit < 0.5 * this.top || !this.step) {
      this.top = factor * unit;
      this.step = unit * (factor < 1.5 ? 0.25 : factor <= 2 ? 0.5 : factor <= 5 ? 1 : 2);
    }
    const axis = { from: 0, to: this.top };
    const steps = Array.from({ length: 7 }, (_, i) => i * this.step);
    return { ...axis, ticks: ticks(steps, short, axis) };
  }
}

// A logarithmic axis of whole decades, from below the lowest value to above the highest.
function spanned(lowest, highest) {
  const decade = (value, round) => 10 ** round(Math.log10(value));
  const axis = { from: 0.1, to: 10, log: true };
  if (highest > 0) {
    axis.from = decade(Math.max(lowest, 1e-3) * 0.9, Math.floor);
    axis.to = decade(highest * 1.1, Math.ceil);
  }
  return { ...axis, ticks: ticks(DECADES, short, axis) };
}

// Bars of the levels ----------------------------------------------------------------------------------

export class LevelChart extends Chart {
  constructor(id) {
    super(id, { xLabel: "level" });
  }

  draw() {
    const { data } = this;
    const last = data.at(-1).level;
    const steps = data.map(({ level }) => level).filter((level) => level % (last > 9 ? 2 : 1) === 0);
    const x = { from: -0.6, to: Math.max(4, last) + 0.6, ticks: steps.map((level) => [level, number(level)]) };
    const y = { from: 0, to: 1, ticks: [0, 0.25, 0.5, 0.75, 1].map((part) => [part, `${100 * part}%`]) };
    this.render(x, y, (px, py, bottom) => data.map(({ level, density }) => mark("rect", {
      x: px(level - 0.36), width: px(0.72) - px(0), y: py(density), height: bottom - py(density),
    }, "--green")));
    this.say(`Density by level: ${data.map(({ level, density }) => `level ${level}, ${Math.round(100 * density)} %`).join("; ")}`);
  }
}

// Counts on two logarithmic axes ---------------------------------------------------------------------

export class CountChart extends Chart {
  constructor(id, { color, xLabel, bins }) {
    super(id, { color, xLabel, bins });
  }

  // data: {from, to, count}
  draw() {
    const { from, to, count } = this.data;
    const [most, last] = [Math.max(1, ...count), Math.max(1, ...to)];
    const x = { from: 0.8, to: last * 1.35 + 1, log: true };
    const y = { from: 0.6, to: most * 1.8, log: true };
    const steps = last < 2000 ? DECADES.flatMap((one) => [one, 2 * one, 5 * one]) : DECADES;
    this.render({ ...x, ticks: ticks(steps, number, x) }, { ...y, ticks: ticks(DECADES, number, y) }, (px, py, bottom) =>
      from.flatMap((value, i) => {
        const [left, top] = [px(value), py(count[i])];
        if (this.bins) {
          const width = Math.max(1, px(to[i] + 1) - left - 1.5);
          return [mark("rect", { x: left, width, y: top, height: bottom - top }, this.color)];
        }
        return [mark("line", { x1: left, x2: left, y1: bottom, y2: top, class: "stem" }, this.color),
          mark("circle", { cx: left, cy: top, r: 3.5 }, this.color)];
      }));
    this.say(`${this.xLabel}: ${from.slice(0, 40).map((value, i) =>
      `${value === to[i] ? value : `${value} to ${to[i]}`}, ${count[i]} vertices`).join("; ")}`);
  }
}
