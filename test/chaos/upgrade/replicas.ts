/** Compares what the nodes of a stopped cluster have stored: all have a replica of every range. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { nodeClock, type Span, silentLogger } from '@remora/base';
import { openLevelEngine, RESIDENT_SPANS } from '@remora/dataserver';
import { KV_SPACE, LEASE_SPACE, LOCK_SPACE } from '@remora/protocol';
import { type Finding, violation } from '../../checkers/index.ts';
import { eventually } from '../../e2e/eventually.ts';
import type { NodeProcess } from '../../e2e/node-process.ts';

const SETTLED_WITHIN_MS = 60_000;

/** Where rows lie that are equal whenever replicas have applied the same entries (dataserver/state/keys.ts). */
const SPACES = { leases: LEASE_SPACE, locks: LOCK_SPACE, keys: KV_SPACE } as const;

/** Waits until no session is left that could end, and every replica has applied the same entries. */
export async function untilSettled(nodes: readonly NodeProcess[]): Promise<void> {
  await eventually(
    'all replicas have applied the same entries, and no session is left',
    async () => {
      const [applied, sessions] = await Promise.all([
        Promise.all(nodes.map((node) => node.metrics('remora_range_applied_index'))),
        Promise.all(nodes.map((node) => node.metrics('remora_sessions'))),
      ]);
      const isSame = new Set(applied.map((each) => JSON.stringify([...each].sort()))).size === 1;
      return isSame && sessions.every((each) => [...each.values()].every((open) => open === 0));
    },
    { timeoutMs: SETTLED_WITHIN_MS },
  );
}

/** The nodes must have stopped in good order, so that everything they applied is in their engines. */
export async function compareReplicas(nodes: readonly NodeProcess[]): Promise<readonly Finding[]> {
  const found: Finding[] = [];
  const digests = await Promise.all(nodes.map(digestsOf));
  const [first] = digests;
  for (const [i, digest] of digests.entries()) {
    for (const [what, { hash, rows }] of digest) {
      const other = first?.get(what);
      if (other?.hash === hash) continue;
      const detail = `${nodes[i]?.name} has ${rows} rows of ${what}, ${nodes[0]?.name} ${other?.rows} others`;
      found.push(violation('replicas are equal', detail));
    }
  }
  return found;
}

async function digestsOf({ dataDir }: NodeProcess): Promise<ReadonlyMap<string, { hash: string; rows: number }>> {
  const engine = await openLevelEngine({
    dir: join(dataDir, 'engine'),
    options: { resident: RESIDENT_SPANS },
    clock: nodeClock(),
    logger: silentLogger,
    logDurable: async () => {},
    onFailure: (error) => {
      throw error;
    },
  });
  const view = engine.view();
  try {
    const digests = new Map<string, { hash: string; rows: number }>();
    for (const [what, space] of Object.entries(SPACES)) {
      const span = { start: Buffer.from([space]), end: Buffer.from([space + 1]) };
      digests.set(what, await digestOf(view, span));
    }
    return digests;
  } finally {
    view.release();
    await engine.close();
  }
}

async function digestOf(
  view: ReturnType<Awaited<ReturnType<typeof openLevelEngine>>['view']>,
  span: Span,
): Promise<{ hash: string; rows: number }> {
  const hash = createHash('sha256');
  let rows = 0;
  for await (const page of view.scan(span)) {
    for (const { key, value } of page) {
      hash.update(`${key.length} ${value.length} `).update(key).update(value);
      rows++;
    }
  }
  return { hash: hash.digest('hex'), rows };
}
