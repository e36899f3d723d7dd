// Where vertices stand: they push each other away and edges pull, as in Fruchterman and Reingold,
// "Graph drawing by force-directed placement" (1991), with steps that shorten as it cools.
//
// Two changes: an edge within a dense part pulls less, or such a part would shrink to a point, and
// vertices that are far apart do not push, so that long walks stay together.

const LENGTH = 64; // of an edge that is at rest
const FAR = 4 * LENGTH;
const MOST = 26; // one step of a vertex, at heat 1

// One step of the vertices `all` {x, y}; links: {a, b}.
export function step(all, links, heat) {
  for (const node of all) [node.fx, node.fy] = [-node.x * 0.05, -node.y * 0.08];
  for (let i = 0; i < all.length; i += 1) {
    for (let j = 0; j < i; j += 1) {
      const [a, b] = [all[i], all[j]];
      const [dx, dy] = [a.x - b.x || 0.1, a.y - b.y || 0.1];
      const apart = dx * dx + dy * dy;
      if (apart > FAR * FAR) continue;
      const force = (LENGTH * LENGTH) / Math.max(25, apart);
      a.fx += dx * force;
      a.fy += dy * force;
      b.fx -= dx * force;
      b.fy -= dy * force;
    }
  }
  const held = new Map();
  for (const { a, b } of links) for (const node of [a, b]) held.set(node, (held.get(node) ?? 0) + 1);
  for (const { a, b } of links) {
    const [dx, dy] = [a.x - b.x, a.y - b.y];
    const pull = (Math.hypot(dx, dy) / LENGTH) * (2.2 / Math.min(held.get(a), held.get(b)) ** 0.9);
    a.fx -= dx * pull;
    a.fy -= dy * pull;
    b.fx += dx * pull;
    b.fy += dy * pull;
  }
  for (const node of all) {
    const size = Math.hypot(node.fx, node.fy) || 1;
    const most = Math.min(size, MOST * heat);
    node.x += (node.fx / size) * most;
    node.y += (node.fy / size) * most;
  }
}
