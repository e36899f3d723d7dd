// The query box: one question, its answer, and the answer's place in the stream.

import { json } from "./net.js";
import { show } from "./walk.js";
import { clock, duration, element, number, plural, short, wordOf } from "./words.js";

const MOST = 500; // vertices listed

const kind = document.getElementById("ask-kind");
const [u, v, k] = ["ask-u", "ask-v", "ask-k"].map((id) => document.getElementById(id));
const answer = document.getElementById("answer");

export function prepare(graph) {
  if (graph.max_hops !== undefined) k.max = graph.max_hops;
  if (graph.directed && graph.predecessors === false) kind.querySelector("[value=predecessors]").remove();
}

kind.addEventListener("change", () => {
  document.getElementById("ask-second").hidden = kind.value !== "edges";
  document.getElementById("ask-steps").hidden = kind.value !== "hops";
  v.required = kind.value === "edges";
});

document.getElementById("ask-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const path = pathOf();
  const started = performance.now();
  try {
    const found = await json(path);
    const place = `version ${number(found.version)}, at ${clock(found.time)} in the stream; answered in ${duration((performance.now() - started) / 1000)}`;
    answer.replaceChildren(...say(found), element("p", { class: "place" }, place), ...list(found), element("code", {}, `GET ${path}`));
  } catch (error) {
    answer.replaceChildren(element("p", { class: "error" }, error.message), element("code", {}, `GET ${path}`));
  }
});

function pathOf() {
  const [first, second] = [u, v].map((field) => encodeURIComponent(field.value.trim()));
  if (kind.value === "edges") return `/v1/edges/${first}/${second}`;
  return `/v1/${kind.value}/${first}${kind.value === "hops" ? `?k=${k.value}` : ""}`;
}

function say(found) {
  const told = (text) => [element("p", { class: "found" }, text)];
  if (found.found) {
    if (!found.found[0]) return told("No such edge");
    const weight = found.weight ? `Weight ${short(found.weight[0])}` : "There is such an edge";
    return told(found.times ? `${weight}, last touched ${clock(found.times[0])}` : weight);
  }
  if (found.degree) return told(`Degree ${number(found.degree[0])}`);
  if (found.present) return told(found.present[0] ? "It is a vertex" : "There is no such vertex");
  const more = found.cursor ? " and more" : "";
  return told(found.ids.length ? `${plural(found.ids.length, "vertex", "vertices")}${more}` : "None");
}

function list(found) {
  if (!found.ids?.length) return [];
  const items = found.ids.slice(0, MOST).map((name) => {
    const word = wordOf(name);
    return element("li", {}, element("button", { type: "button", class: "quiet", onclick: () => show(word) }, word));
  });
  return [element("ul", {}, ...items)];
}
