// Dead letters, checkpoints, alerts and kept figures, as lists.

import { bytes, clock, duration, element, number } from "./words.js";

const byId = (id) => document.getElementById(id);

function table(heads, rows) {
  const head = element("tr", {}, ...heads.map(([text, kind]) => element("th", { scope: "col", class: kind ?? "" }, text)));
  const body = rows.map((row) => element("tr", {}, ...row.map((cell, i) => element("td", { class: heads[i][1] ?? "" }, cell))));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
}

export function letters(newest) {
  if (!newest.length) return;
  byId("letters-list").replaceChildren(table([["Where"], ["Why"], ["Bytes", "number"], ["Begins"]], newest.map((letter) => [
    `${letter.topic} ${letter.partition}, ${number(letter.offset)}`, letter.reason, number(letter.bytes),
    element("code", {}, letter.starts),
  ])));
}

export function checkpoints(newest) {
  if (!newest.length) return;
  byId("checkpoints-list").replaceChildren(table([["Number", "number"], ["Taken"], ["Size", "number"], ["Stream stood", "number"]],
    newest.map((each) => [number(each.number), clock(each.time), bytes(each.bytes), duration(each.stopped)])));
}

const fired = new Map(); // rule → its last alert

export function noteAlert(alert) {
  fired.set(alert.rule, alert);
}

let shown = "";

export function alerts(rules, active) {
  const now = JSON.stringify([rules, active, [...fired.values()]]);
  if (!rules.length || now === shown) return;
  shown = now;
  const items = rules.map((rule) => {
    const last = fired.get(rule);
    const when = last ? element("small", {}, `last at ${clock(last.at)}, with ${number(last.value)}`) : "";
    return element("li", { "data-tone": active.includes(rule) ? "warn" : "good" }, rule, when);
  });
  byId("alerts-list").replaceChildren(element("ul", { class: "rules" }, ...items));
}

const WORDS = { core: "largest core number", triangles: "triangles", components: "components of two or more", butterflies: "butterflies" };

export function figures(kept) {
  const parts = Object.entries(kept).map(([name, value]) =>
    element("div", {}, element("dt", {}, WORDS[name] ?? name), element("dd", {}, number(value))));
  if (parts.length) byId("figures-list").replaceChildren(element("dl", { class: "kept" }, ...parts));
}
