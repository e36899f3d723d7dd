// Requests with the token, if one is needed, and the stream of events.
//
// Events are read by fetch: an EventSource sends no Authorization header. A connection that breaks is
// tried again, first soon and then every few seconds, and goes on behind the last event it brought.

const KEY = "lpma-token";
const QUIET_MS = 35000; // the service sends something every 15 s

function headers() {
  const token = sessionStorage.getItem(KEY);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

let asking = null;

// Ask for the token, once however many requests want it.
function askForToken(wrong) {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("token");
    document.getElementById("token-said").textContent = wrong ? "That was not it." : "";
    dialog.addEventListener("close", () => {
      const field = document.getElementById("token-text");
      sessionStorage.setItem(KEY, field.value.trim());
      field.value = "";
      asking = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

export async function request(path, options = {}) {
  for (;;) {
    const sent = sessionStorage.getItem(KEY);
    const response = await fetch(path, { ...options, headers: { ...options.headers, ...headers() } });
    if (response.status !== 401) return response;
    if (sent === sessionStorage.getItem(KEY)) await askForToken(sent !== null);
  }
}

// Integers beyond 2^53, which names may be, stay whole where the browser lets us see their digits.
function parsed(text) {
  return JSON.parse(text, (key, value, context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "")
      ? BigInt(context.source) : value);
}

export async function json(path, options) {
  const response = await request(path, options);
  const content = parsed(await response.text());
  if (!response.ok) throw new Error(content.detail ?? `${response.status}`);
  return content;
}

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// onEvents gets [{kind, data}, …] as they come, onState "live" or "lost".
export async function watch(recent, onEvents, onState) {
  let last = null;
  let pause = 250;
  for (;;) {
    try {
      const query = last === null ? `recent=${recent}` : `after=${last}`;
      await read(`/v1/events?${query}`, (events) => {
        pause = 250;
        onState("live");
        last = events.at(-1).id;
        onEvents(events);
      });
    } catch {
      // The network or the service: both are said, and tried again.
    }
    onState("lost");
    await wait(pause);
    pause = Math.min(pause * 2, 5000);
  }
}

async function read(path, onEvents) {
  const abort = new AbortController();
  let timer = setTimeout(() => abort.abort(), QUIET_MS);
  try {
    const response = await request(path, { signal: abort.signal, cache: "no-store" });
    if (!response.ok) throw new Error(`${response.status}`);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => abort.abort(), QUIET_MS);
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      const events = blocks.map(event).filter((found) => found !== null);
      if (events.length) onEvents(events);
    }
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
}

function event(block) {
  const fields = {};
  for (const line of block.split("\n")) {
    const at = line.indexOf(": ");
    if (at > 0) fields[line.slice(0, at)] = line.slice(at + 2);
  }
  return fields.data === undefined ? null : { id: fields.id, kind: fields.event, data: JSON.parse(fields.data) };
}
