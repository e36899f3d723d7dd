// Charts, drawn by Bokeh from arrays. Every chart has a fixed range of x, so that a new point moves
// data and no axis; its range of y grows in round steps. At most one chart is drawn a frame, and one
// that nobody sees is not drawn at all.

const POINTS = 240; // across a chart of time, however long that is
const DECADES = Array.from({ length: 15 }, (_, i) => 10 ** (i - 4));

export function load() {
  const add = (name) => new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL(name, import.meta.url);
    script.onload = resolve;
    script.onerror = reject;
    document.head.append(script);
  });
  return add("bokeh.min.js").then(() => add("bokeh-api.min.js")).then(() => Bokeh.set_log_level("warn"));
}

// What a colour or a font of the style sheet comes to, in the theme of the moment.
function css(name) {
  const probe = document.createElement("i");
  const property = name === "--font" ? "fontFamily" : "color";
  probe.style[property] = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe)[property];
  probe.remove();
  return value;
}

// One chart a frame ---------------------------------------------------------------------------------

const waiting = new Set();

function nextFrame() {
  for (const chart of waiting) {
    waiting.delete(chart);
    if (!chart.seen || !chart.data) continue;
    chart.draw();
    break;
  }
  if (waiting.size) requestAnimationFrame(nextFrame);
}

function schedule(chart) {
  if (document.hidden || !chart.seen) return;
  if (!waiting.size) requestAnimationFrame(nextFrame);
  waiting.add(chart);
}

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    entry.target.chart.seen = entry.isIntersecting;
    if (entry.isIntersecting) schedule(entry.target.chart);
  }
});

// What all charts have in common --------------------------------------------------------------------

class Chart {
  constructor(id, options) {
    this.host = document.getElementById(id);
    this.host.chart = this;
    this.host.setAttribute("role", "img");
    this.host.setAttribute("aria-label", this.host.closest("figure").querySelector("h3").textContent);
    this.seen = false;
    this.options = options;
    this.data = null;
  }

  async build() {
    this.view?.remove();
    this.host.replaceChildren();
    const ranges = { x_range: new Bokeh.Range1d(this.options.x), y_range: new Bokeh.Range1d(this.options.y) };
    this.plot = Bokeh.Plotting.figure({
      sizing_mode: "stretch_both", toolbar_location: null, tools: "", outline_line_color: null,
      background_fill_color: null, border_fill_color: null, min_border: 2, min_border_right: 10,
      x_axis_type: this.options.xType ?? "linear", y_axis_type: this.options.yType ?? "linear", ...ranges,
    });
    this.#dress();
    this.source = new Bokeh.ColumnDataSource({ data: this.empty() });
    this.glyphs(this.plot, this.source);
    this.view = await Bokeh.Plotting.show(this.plot, this.host);
    for (const part of this.host.children) part.inert = true; // a picture: no stop for Tab
    seen.observe(this.host);
    if (this.data) schedule(this);
  }

  #dress() {
    const [below, left] = [this.plot.below[0], this.plot.left[0]];
    for (const axis of [below, left]) {
      axis.setv({
        axis_line_color: null, major_tick_line_color: null, minor_tick_line_color: null,
        major_label_text_color: css("--faint-ink"), major_label_text_font: css("--font"),
        major_label_text_font_size: "11px", axis_label_text_color: css("--faint-ink"),
        axis_label_text_font: css("--font"), axis_label_text_font_size: "11px",
        axis_label_text_font_style: "normal", axis_label_standoff: 2,
        formatter: new Bokeh.NumeralTickFormatter({ format: "0,0.[000]" }),
      });
    }
    below.setv({ axis_label: this.options.xLabel ?? null, axis_line_color: css("--line") });
    left.setv({ axis_label: null });
    for (const grid of this.plot.center) {
      grid.setv({ grid_line_color: grid.dimension === 1 ? css("--grid") : null });
    }
    this.dress?.(below, left);
  }

  show(data) {
    this.data = data;
    schedule(this);
  }

  // A range of y from `start` to a round number above the highest value.
  reach(highest, least) {
    const top = Math.max(highest * 1.08, least);
    const unit = 10 ** Math.floor(Math.log10(top));
    const end = [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((factor) => factor * unit >= top) * unit;
    const now = this.plot.y_range.end;
    // It falls only when much room is left, so that the axis keeps still.
    if (end > now || end < 0.5 * now) this.plot.y_range.setv({ end });
  }
}

// A line, or two, over the last seconds --------------------------------------------------------------

export class TimeChart extends Chart {
  // log: a logarithmic axis, without an area; else it begins at 0 and reaches `least` at least.
  constructor(id, { colors, dashes, least, log }) {
    const y = log ? { start: 0.1, end: 10 } : { start: 0, end: least };
    super(id, { x: { start: -120, end: 0 }, y, yType: log ? "log" : "linear" });
    Object.assign(this, { colors, dashes, least, log, window: 120, drawn: 0 });
  }

  empty() {
    return { x: [], area: [], ...Object.fromEntries(this.colors.map((_, i) => [`y${i}`, []])) };
  }

  dress(below, left) {
    this.#ticks(below);
    if (!this.log) return;
    left.setv({ ticker: new Bokeh.FixedTicker({ ticks: DECADES }) });
    this.plot.center.find((grid) => grid.dimension === 1).ticker = new Bokeh.FixedTicker({ ticks: DECADES });
  }

  #ticks(below) {
    const step = this.window / 4;
    const ticks = [0, 1, 2, 3, 4].map((i) => -step * i);
    const said = (s) => (s < 60 ? `${s} s` : s < 3600 ? `${s / 60} min` : `${s / 3600} h`);
    below.setv({
      ticker: new Bokeh.FixedTicker({ ticks }),
      major_label_overrides: new Map(ticks.map((t) => [t, t === 0 ? "now" : `−${said(-t)}`])),
    });
  }

  glyphs(plot, source) {
    if (!this.log) plot.varea({ field: "x" }, 0, { field: "area" }, { source, fill_color: css(this.colors[0]), fill_alpha: 0.13 });
    this.colors.forEach((color, i) => {
      plot.line({ field: "x" }, { field: `y${i}` }, { source, line_color: css(color), line_width: 1.8, line_join: "round",
        line_dash: this.dashes[i] });
    });
  }

  setWindow(seconds) {
    this.window = seconds;
    if (!this.plot) return;
    this.plot.x_range.setv({ start: -seconds });
    this.#ticks(this.plot.below[0]);
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
    const x = Float64Array.from({ length: count }, (_, i) => Math.min(0, ((begin + i + 1) * width - now) / 1000));
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
    if (this.log) this.#span(lowest, highest);
    else this.reach(highest, this.least);
    const area = made[0].map((value) => (Number.isNaN(value) ? 0 : value));
    this.source.data = { x, area, ...Object.fromEntries(made.map((column, i) => [`y${i}`, column])) };
  }

  // Whole decades from below the lowest value to above the highest.
  #span(lowest, highest) {
    if (!(highest > 0)) return;
    const decade = (value, round) => 10 ** round(Math.log10(value));
    const [start, end] = [decade(Math.max(lowest, 1e-3) * 0.9, Math.floor), decade(highest * 1.1, Math.ceil)];
    if (start !== this.plot.y_range.start || end !== this.plot.y_range.end) this.plot.y_range.setv({ start, end });
  }

  say(text) { this.host.setAttribute("aria-label", text); }
}

// Bars of the levels ----------------------------------------------------------------------------------

export class LevelChart extends Chart {
  constructor(id) {
    super(id, { x: { start: -0.6, end: 8.6 }, y: { start: 0, end: 1 }, xLabel: "level" });
  }

  empty() {
    return { level: [], density: [] };
  }

  dress(below, left) {
    left.setv({ formatter: new Bokeh.NumeralTickFormatter({ format: "0%" }),
      ticker: new Bokeh.FixedTicker({ ticks: [0, 0.25, 0.5, 0.75, 1] }) });
    below.setv({ ticker: new Bokeh.SingleIntervalTicker({ interval: 2 }) });
  }

  glyphs(plot, source) {
    plot.vbar({ field: "level" }, 0.72, { field: "density" }, 0, { source, fill_color: css("--green"), line_color: null });
  }

  draw() {
    const { data } = this;
    const last = data.at(-1).level;
    this.plot.x_range.setv({ end: Math.max(4, last) + 0.6 });
    this.plot.below[0].ticker.interval = last > 9 ? 2 : 1;
    this.source.data = { level: data.map((each) => each.level), density: data.map((each) => each.density) };
    this.host.setAttribute("aria-label", `Density by level: ${data.map((each) =>
      `level ${each.level}, ${Math.round(100 * each.density)} %`).join("; ")}`);
  }
}

// Counts on two logarithmic axes ---------------------------------------------------------------------

export class CountChart extends Chart {
  constructor(id, { color, xLabel, bins }) {
    super(id, { x: { start: 0.8, end: 12 }, y: { start: 0.6, end: 12 }, xLabel, xType: "log", yType: "log" });
    Object.assign(this, { color, bins });
  }

  empty() {
    return { left: [], right: [], middle: [], count: [], foot: [] };
  }

  dress(below, left) {
    const formatter = new Bokeh.NumeralTickFormatter({ format: "0,0" });
    const ticker = (ticks) => new Bokeh.FixedTicker({ ticks });
    for (const axis of [below, left]) axis.setv({ formatter, ticker: ticker(DECADES) });
    this.plot.center.find((grid) => grid.dimension === 1).ticker = ticker(DECADES);
  }

  glyphs(plot, source) {
    const color = css(this.color);
    const field = (name) => ({ field: name });
    if (this.bins) {
      plot.quad(field("left"), field("right"), field("foot"), field("count"),
        { source, fill_color: color, fill_alpha: 0.85, line_color: css("--panel"), line_width: 1.5 });
      return;
    }
    plot.segment(field("middle"), field("foot"), field("middle"), field("count"),
      { source, line_color: color, line_width: 2, line_alpha: 0.35 });
    plot.scatter(field("middle"), field("count"), { source, size: 7, fill_color: color, line_color: css("--panel") });
  }

  // data: {from, to, count}
  draw() {
    const { from, to, count } = this.data;
    const [most, last] = [Math.max(1, ...count), Math.max(1, ...to)];
    this.plot.x_range.setv({ end: last * 1.35 + 1 });
    this.plot.y_range.setv({ end: most * 1.8 });
    const ticks = [1, 2, 5].flatMap((f) => [...Array(10)].map((_, i) => f * 10 ** i)).sort((a, b) => a - b);
    const [below] = this.plot.below;
    below.ticker.ticks = last < 2000 ? ticks : ticks.filter((tick) => String(tick).startsWith("1"));
    this.source.data = {
      left: from, right: to.map((value) => value + 1), middle: from, count, foot: count.map(() => 0.6),
    };
    this.host.setAttribute("aria-label", `${this.options.xLabel}: ${from.slice(0, 40).map((value, i) =>
      `${value === to[i] ? value : `${value} to ${to[i]}`}, ${count[i]} vertices`).join("; ")}`);
  }
}
