// The endpoints, from openapi.json: for each its path, what it does, what it takes and gives.

import { element } from "./words.js";

const docs = document.getElementById("docs");
const METHODS = ["get", "post", "put", "delete"];

// Follows {"$ref": "#/components/…"}.
function resolved(document, part) {
  if (!part?.$ref) return part ?? {};
  return part.$ref.slice(2).split("/").reduce((found, key) => found?.[key.replaceAll("~1", "/").replaceAll("~0", "~")], document) ?? {};
}

// Text in which `code` is marked.
function told(text) {
  return (text ?? "").split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part));
}

function table(heads, rows) {
  const cells = (row, tag) => element("tr", {}, ...row.map((cell) => element(tag, {}, ...[cell].flat())));
  return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, cells(heads, "th")), element("tbody", {}, ...rows.map((row) => cells(row, "td")))));
}

function kindOf(document, schema) {
  const found = resolved(document, schema);
  const either = found.anyOf ?? found.oneOf;
  if (either) return either.map((each) => kindOf(document, each)).join(" | ");
  if (found.enum) return found.enum.join(" | ");
  return found.type === "array" ? `array of ${kindOf(document, found.items)}` : [found.type ?? "any"].flat().join(" | ");
}

// What one media type's schema has, as rows of a table.
function fields(document, content) {
  const schema = resolved(document, content?.schema);
  return Object.entries(schema.properties ?? {}).map(([name, each]) => [
    element("code", {}, name), kindOf(document, each), told(resolved(document, each).description),
  ]);
}

// JSON in which what is short stays on its line.
function pretty(value, indent = "") {
  const flat = JSON.stringify(value);
  if (flat.length + indent.length < 84 || value === null || typeof value !== "object") return flat;
  const deeper = `${indent}  `;
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const parts = Array.isArray(value) ? value.map((each) => pretty(each, deeper))
    : Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${pretty(each, deeper)}`);
  return `${open}\n${parts.map((part) => deeper + part).join(",\n")}\n${indent}${close}`;
}

function example(content) {
  const one = content?.example ?? Object.values(content?.examples ?? {})[0]?.value;
  if (one === undefined) return [];
  return [element("pre", { tabindex: 0 }, typeof one === "string" ? one : pretty(one))];
}

function body(document, said, part) {
  const found = resolved(document, part);
  const [[kind, content] = []] = Object.entries(found.content ?? {});
  if (!kind) return [];
  const rows = fields(document, content);
  const others = Object.keys(found.content).slice(1);
  const also = others.length ? `, or ${others.join(", ")}` : "";
  return [element("p", { class: "hint" }, `${said}: ${kind}${also}`), ...(rows.length ? [table(["field", "type", ""], rows)] : []), ...example(content)];
}

const anchor = (method, path) => `${method}${path.replaceAll(/[^a-z0-9]+/gi, "-")}`;

function operation(document, path, method, found) {
  const parameters = (found.parameters ?? []).map((each) => resolved(document, each));
  const rows = parameters.map((each) => [element("code", {}, each.name), each.in, kindOf(document, each.schema), told(each.description)]);
  const responses = Object.entries(found.responses ?? {});
  const [, good] = responses.find(([status]) => status.startsWith("2")) ?? [];
  const statuses = responses.filter(([status]) => !status.startsWith("2")).map(([status, each]) => [element("code", {}, status), told(resolved(document, each).description)]);
  return element("article", { id: anchor(method, path), "aria-label": `${method} ${path}` },
    element("h3", {}, element("b", {}, method.toUpperCase()), path),
    element("p", {}, ...told(found.summary)), ...(found.description ? [element("p", { class: "hint" }, ...told(found.description))] : []),
    ...(rows.length ? [table(["parameter", "in", "type", ""], rows)] : []),
    ...body(document, "takes", found.requestBody), ...body(document, "gives", good),
    ...(statuses.length ? [element("details", {}, element("summary", {}, `${statuses.length} errors`), table(["status", ""], statuses))] : []));
}

try {
  const response = await fetch("/openapi.json");
  if (!response.ok) throw new Error(`openapi.json: ${response.status}`);
  const document = await response.json();
  const groups = new Map();
  const index = element("ul", { class: "index" });
  for (const [path, item] of Object.entries(document.paths)) {
    for (const method of METHODS.filter((each) => item[each])) {
      const tag = item[method].tags?.[0] ?? "";
      index.append(element("li", {}, element("a", { href: `#${anchor(method, path)}` }, element("b", {}, method.toUpperCase()), path)));
      groups.set(tag, [...(groups.get(tag) ?? []), operation(document, path, method, { ...item[method], parameters: [...(item.parameters ?? []), ...(item[method].parameters ?? [])] })]);
    }
  }
  docs.replaceChildren(element("h2", {}, document.info.title), element("p", {}, ...told(document.info.description)),
    element("nav", { "aria-label": "All endpoints" }, index),
    ...[...groups].flatMap(([tag, articles]) => [...(tag ? [element("h2", {}, tag)] : []), ...articles]));
} catch (error) {
  docs.replaceChildren(element("p", {}, error.message));
}
