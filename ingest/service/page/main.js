// The page: brings events and figures to where they are shown.

import { prepare } from "./ask.js";
import * as charts from "./charts.js";
import * as lists from "./lists.js";
import { json, watch } from "./net.js";
import { lagSaid, verdict } from "./verdict.js";
import { show } from "./walk.js";
import { ago, bytes, duration, number, plural, short } from "./words.js";

const RECENT = 5000; // events asked for at the start
const KEPT = 80000; // points of the charts of time, ten a second: two hours
const SLOW_MS = 5000; // between two looks at what changes slowly

const byId = (id) => document.getElementById(id);
const state = { connection: "wait", live: null, batch: null, age: null, ageAt: 0, letterAt: 0, rules: [] };
const series = { at: [], rate: [], lag: [], median: [], p99: [] };

// Charts ---------------------------------------------------------------------------------------------------

const drawn = {
  rate: new charts.TimeChart("chart-rate", { colors: ["--blue"], least: 10 }),
  lag: new charts.TimeChart("chart-lag", { colors: ["--gold"], least: 10 }),
  latency: new charts.TimeChart("chart-latency", { colors: ["--purple", "--orange"], log: true }),
  density: new charts.LevelChart("chart-density"),
  cores: new charts.CountChart("chart-cores", { color: "--blue", xLabel: "core number", bins: false }),
  degrees: new charts.CountChart("chart-degrees", { color: "--purple", xLabel: "degree", bins: true }),
};

function redraw() {
  if (!series.at.length) return;
  const now = state.connection === "live" ? Math.max(Date.now() + state.skew, series.at.at(-1)) : series.at.at(-1);
  drawn.rate.show({ at: series.at, columns: [series.rate], now });
  drawn.lag.show({ at: series.at, columns: [series.lag], now });
  drawn.latency.show({ at: series.at, columns: [series.median, series.p99], now });
}

function describe() {
  const { batch } = state;
  if (!batch) return;
  drawn.rate.say(`Operations a second, now ${number(batch.rate)}`);
  drawn.lag.say(`Lag, now ${number(batch.lag)} records${batch.lag_growing ? ", growing" : ""}`);
  drawn.latency.say(`Time of a batch: median ${short(batch.ms.median)} ms, 99 % ${short(batch.ms.p99)} ms`);
}

// What comes -----------------------------------------------------------------------------------------------

function onEvents(events) {
  for (const { kind, data } of events) {
    if (kind === "batch") onBatch(data);
    else if (kind === "hello") onHello(data);
    else if (kind === "letter") state.letterAt = Math.max(state.letterAt, data.at), slowly();
    else if (kind === "checkpoint") slowly();
    else if (kind === "figures") lists.figures(data.figures);
    else if (kind === "alert") lists.noteAlert(data);
  }
  render();
  redraw();
}

function onHello(hello) {
  state.live = hello.live;
  state.rules = hello.rules;
  state.skew = hello.at - Date.now();
  document.documentElement.classList.toggle("stored", !hello.live);
  byId("title").textContent = hello.title;
  document.title = `${hello.title} · lpma`;
}

function onBatch(batch) {
  state.batch = batch;
  state.age = batch.checkpoint_age_s;
  state.ageAt = performance.now();
  series.at.push(batch.at);
  series.rate.push(batch.rate);
  series.lag.push(batch.lag);
  series.median.push(batch.ms.median);
  series.p99.push(batch.ms.p99);
  if (series.at.length > 1.1 * KEPT) for (const name of Object.keys(series)) series[name] = series[name].slice(-KEPT);
}

function onState(connection) {
  if (connection === state.connection) return;
  state.connection = connection;
  document.documentElement.classList.toggle("lost", connection === "lost");
  render();
  if (connection === "live") slowly();
}

// What is shown --------------------------------------------------------------------------------------------

function text(id, value) {
  const element = byId(id);
  if (element.textContent !== value) element.textContent = value;
}

function tone(id, value) {
  byId(id).dataset.tone = value;
}

function render() {
  const live = byId("live");
  live.dataset.state = state.connection === "live" && state.live === false ? "stored" : state.connection;
  const words = { live: state.live === false ? "saved store" : "live", lost: "connection lost, trying again", wait: "connecting" };
  text("live", words[state.connection]);
  const age = state.age === null ? null : state.age + (performance.now() - state.ageAt) / 1000;
  const [mood, sentence] = verdict({ ...state, age });
  tone("verdict", mood);
  text("verdict", sentence);
  if (state.batch) gauges(state.batch, age);
}

function gauges(batch, age) {
  text("version", number(batch.version));
  if (batch.edges !== null) text("edges", number(batch.edges));
  text("rate", number(batch.rate));
  text("lag", number(batch.lag));
  text("lag-unit", batch.lag === 1 ? "record waits" : "records wait");
  const [lagTone, lagWords] = lagSaid(batch);
  tone("gauge-lag", lagTone);
  text("lag-said", lagWords);
  const [count, unit] = ago(age);
  text("age", count);
  text("age-unit", unit);
  tone("gauge-checkpoint", age === null ? "wait" : age > 300 && batch.idle_s < 300 ? "warn" : "good");
  text("letters", number(batch.dead_letters));
  text("letters-unit", batch.dead_letters === 1 ? "dead letter" : "dead letters");
  const fresh = Date.now() - state.letterAt < 300000;
  tone("gauge-letters", batch.dead_letters && fresh ? "warn" : "good");
  text("median", short(batch.ms.median));
  tone("gauge-latency", batch.ms.median === null ? "wait" : "good");
  text("latency-said", batch.ms.median === null ? `Quiet for ${duration(batch.idle_s)}.` : `99 % within ${short(batch.ms.p99)} ms (last 10 s).`);
  lists.alerts(state.rules, batch.alerts);
}

// What changes slowly --------------------------------------------------------------------------------------

let looking = false;

async function slowly() {
  if (looking || document.hidden) return;
  looking = true;
  try {
    distributions().catch(() => {}); // may take long: nothing waits for it
    const all = [graph(), ...(state.live ? [letters(), checkpoints()] : [])];
    await Promise.allSettled(all);
    describe();
  } finally {
    looking = false;
  }
}

async function graph() {
  const found = await json("/v1/graph");
  text("vertices", number(found.vertices));
  text("edges", number(found.edges));
  text("version", number(found.version));
  text("device", found.device);
  byId("expired-fact").hidden = !found.expired && !found.window;
  if (state.live) text("expired", number(found.expired));
  text("degree-word", found.directed ? "out-degree" : "degree");
  text("footer", `${plural(found.levels, "level")}, ${bytes(found.bytes)}, ${found.directed ? "directed" : "undirected"}${found.names ? ", by name" : ""}. This page asks this host alone.`);
  if (!graph.done) prepare(found);
  graph.done = true;
}

async function distributions() {
  if (distributions.asked) return;
  distributions.asked = true;
  let found;
  try {
    found = await json("/v1/page/distributions");
  } finally {
    distributions.asked = false;
  }
  if (found.version === distributions.version) return;
  distributions.version = found.version;
  drawn.density.show(found.densities);
  const cores = found.cores.value.map((value, i) => [value, found.cores.count[i]]).filter(([value]) => value > 0);
  if (cores.length) {
    const [value, count] = [cores.map(([core]) => core), cores.map((each) => each[1])];
    drawn.cores.show({ from: value, to: value, count });
    text("cores-said", `largest ${number(value.at(-1))}`);
  }
  const bins = found.degrees.from.map((from, i) => [from, found.degrees.to[i], found.degrees.count[i]]);
  const some = bins.filter(([from]) => from > 0);
  const none = bins.find(([from]) => from === 0);
  if (some.length) drawn.degrees.show({ from: some.map((b) => b[0]), to: some.map((b) => b[1]), count: some.map((b) => b[2]) });
  text("degrees-said", none ? `${number(none[2])} of 0` : "");
  text("density-said", `${plural(found.densities.reduce((sum, each) => sum + each.segments, 0), "segment")}`);
  if (!distributions.walked) show(null);
  distributions.walked = true;
}

async function letters() {
  const found = await json("/v1/page/letters");
  lists.letters(found.newest);
  const reasons = Object.entries(found.reasons).sort((a, b) => b[1] - a[1]).map(([reason, count]) => `${number(count)} ${reason}`);
  text("letters-said", reasons.length ? `${reasons.join(", ")}.` : "Nothing was refused.");
}

async function checkpoints() {
  const found = await json("/v1/page/checkpoints");
  lists.checkpoints(found.newest);
  const [last] = found.newest;
  if (last) text("checkpoint-said", `Number ${number(last.number)}: ${bytes(last.bytes)} in ${duration(last.seconds)}; the stream stood still for ${duration(last.stopped)}.`);
  else text("checkpoint-said", found.kept ? "None yet." : "This stream has no checkpoint directory: a crash begins anew.");
}

// Theme and time -------------------------------------------------------------------------------------------

const THEMES = { auto: ["◐", "Auto", "as the system has it"], light: ["☀", "Light", "light"], dark: ["☾", "Dark", "dark"] };

function dress(theme) {
  const [sign, word, said] = THEMES[theme];
  byId("theme").replaceChildren(`${sign} `, Object.assign(document.createElement("span"), { textContent: word }));
  byId("theme").setAttribute("aria-label", `Theme: ${said}`);
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

byId("theme").addEventListener("click", () => {
  const order = Object.keys(THEMES);
  const theme = order[(order.indexOf(document.documentElement.dataset.theme ?? "auto") + 1) % order.length];
  localStorage.setItem("lpma-theme", theme);
  dress(theme);
});
dress(document.documentElement.dataset.theme ?? "auto");

for (const button of document.querySelectorAll("[data-window]")) {
  button.addEventListener("click", () => {
    for (const each of document.querySelectorAll("[data-window]")) each.setAttribute("aria-pressed", String(each === button));
    for (const name of ["rate", "lag", "latency"]) drawn[name].setWindow(Number(button.dataset.window));
  });
}

document.addEventListener("visibilitychange", () => !document.hidden && (redraw(), slowly()));
setInterval(render, 1000);
setInterval(slowly, SLOW_MS);
watch(RECENT, onEvents, onState);
slowly();
