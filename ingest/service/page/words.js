// Numbers and times as people read them, and vertices as they are written on the command line.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function number(value) {
  return value === null || value === undefined ? "–" : whole.format(value);
}

// With three digits, or all of a whole number.
export function short(value) {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) >= 100) return whole.format(value);
  return String(Number(value.toPrecision(value >= 10 ? 3 : 2)));
}

// ["12", "s ago"], ["3", "min ago"] …
export function ago(seconds) {
  if (seconds === null || seconds === undefined) return ["–", ""];
  if (seconds < 120) return [String(Math.floor(seconds)), "s ago"];
  if (seconds < 7200) return [String(Math.floor(seconds / 60)), "min ago"];
  if (seconds < 172800) return [String(Math.floor(seconds / 3600)), "h ago"];
  return [String(Math.floor(seconds / 86400)), "days ago"];
}

export function duration(seconds) {
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${short(seconds * 1000)} ms`;
  if (seconds < 120) return `${short(seconds)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${short(seconds / 3600)} h`;
}

export function bytes(value) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${short(value)} ${units[at]}`;
}

export function clock(ms) {
  const time = new Date(ms);
  const day = new Date().toDateString() === time.toDateString() ? "" : `${time.toLocaleDateString("sv")} `;
  return `${day}${time.toLocaleTimeString("sv")}`;
}

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

// The word for a vertex, which the service's paths take: see state/vertex_names.py.
export function wordOf(name) {
  if (typeof name !== "string") return String(name);
  return /^-?\d+$/.test(name) || name.startsWith('"') ? JSON.stringify(name) : name;
}

export function svgElement(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}
