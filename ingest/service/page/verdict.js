// What to think of it, in a sentence: the first of these that is so.

import { ago, duration, number, plural, short } from "./words.js";

const FRESH_MS = 300000; // how long a refusal is news
const OLD_S = 300; // of a checkpoint, while the stream moves

export function lagSaid(batch) {
  if (batch.lag === null) return ["wait", "A file has no end that is known beforehand."];
  if (batch.lag_growing) return ["warn", `Growing by ${short(batch.lag_per_s)} records a second.`];
  if (batch.lag === 0) return ["good", "Caught up."];
  if (batch.lag_per_s < -0.5 && batch.lag > 100) {
    return ["good", `Shrinking: none left in about ${duration(batch.lag / -batch.lag_per_s)}.`];
  }
  return ["good", "Steady: not growing."];
}

// state: {connection, ended, live, batch, checkpointAge, letterAt, letters}
export function verdict(state) {
  const { batch } = state;
  if (state.connection === "lost") return ["warn", "The connection is lost. What you see is old; trying again."];
  if (state.live === false) return ["good", "A saved store: nothing changes here."];
  if (!batch) return ["wait", "Connecting…"];
  if (batch.ended) return ["warn", `The stream has ended: ${batch.ended}.`];
  if (batch.alerts.length) return ["warn", `${plural(batch.alerts.length, "alert")}: ${batch.alerts.join(", ")}.`];
  if (batch.lag_growing) return ["warn", `It falls behind: ${number(batch.lag)} records wait, ${short(batch.lag_per_s)} more each second.`];
  if (state.age !== null && state.age > OLD_S && batch.idle_s < OLD_S) {
    return ["warn", `No checkpoint for ${duration(state.age)}, though the stream moves.`];
  }
  const saved = state.age === null ? "nothing is kept on disk" : state.age < 2 ? "saved just now" : `saved ${ago(state.age).join(" ")}`;
  const refused = Date.now() - state.letterAt < FRESH_MS ? `but ${plural(batch.dead_letters, "record")} refused` : "nothing refused of late";
  const pace = batch.idle_s > 30 ? `Quiet for ${duration(batch.idle_s)}` : batch.lag === null ? "Reading" : batch.lag > 1000 ? "Working through what waits" : "Keeping up";
  return ["good", `${pace}, ${saved}, ${refused}.`];
}
