// Where the time of CPU profiles went: `node bench/profile-summary.mjs [--top n] <file or directory> ...`.
// For each function its own time and the time under it, in per cent of the time that was not idle.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  options: { top: { type: 'string', default: '30' } },
  allowPositionals: true,
});
for (const path of positionals.flatMap(profilesIn)) summarize(path, Number(values.top));

function profilesIn(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { recursive: true })
    .filter((name) => name.endsWith('.cpuprofile'))
    .sort()
    .map((name) => join(path, name));
}

function summarize(path, top) {
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(path, 'utf8'));
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const selfById = new Map();
  for (const [i, id] of samples.entries()) selfById.set(id, (selfById.get(id) ?? 0) + timeDeltas[i]);

  const rows = new Map();
  const rowOf = (node) => {
    const name = label(node.callFrame);
    const row = rows.get(name) ?? { name, self: 0, total: 0 };
    rows.set(name, row);
    return row;
  };
  /** Time at and below `node`; a function that calls itself counts once. */
  const walk = (node, open) => {
    const row = rowOf(node);
    const own = selfById.get(node.id) ?? 0;
    row.self += own;
    const outermost = !open.has(row.name);
    if (outermost) open.add(row.name);
    let total = own;
    for (const child of node.children ?? []) total += walk(byId.get(child), open);
    if (outermost) {
      open.delete(row.name);
      row.total += total;
    }
    return total;
  };
  const all = walk(nodes[0], new Set());
  const busy = all - (rows.get('(idle)')?.self ?? 0);
  const percent = (micros) => `${((100 * micros) / busy).toFixed(1).padStart(6)} %`;
  console.log(`\n${path}: busy ${(busy / 1e6).toFixed(1)} s of ${(all / 1e6).toFixed(1)} s`);
  console.log('     own     under  function');
  const shown = [...rows.values()].filter(({ name }) => name !== '(idle)' && name !== '(root)');
  for (const row of shown.sort((a, b) => b.self - a.self).slice(0, top)) {
    console.log(`${percent(row.self)}  ${percent(row.total)}  ${row.name}`);
  }
}

function label({ functionName, url, lineNumber }) {
  const name = functionName === '' ? '(anonymous)' : functionName;
  return url === '' ? name : `${name}  ${basename(url)}:${lineNumber + 1}`;
}
