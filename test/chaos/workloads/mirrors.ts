/**
 * Local copies (`kv.mirror`) of what STMs change, through all faults. Now and then, and mostly in the moment of a
 * change, a copy is compared with a read of its revision. In the end the copy must reach a write of its own client, and
 * have it.
 */
import { createHash } from 'node:crypto';
import type { KvMirror, KvPair } from 'remora';
import { ask } from './ask.ts';
import { bankPrefix } from './bank.ts';
import { type Client, inRounds, type MakeWorkers, namesFor } from './workload.ts';

const LIFE_MS_MAX = 6_000;
const SAMPLE_MS_MAX = 400;
/** How long a copy may take to follow, far more than any fault lasts. */
const REACHES_MS_MAX = 120_000;

export const mirrors: MakeWorkers = (client) => {
  const name = namesFor(client, 'm');
  return [inRounds(client, (r) => one(client, r, name()))];
};

async function one(client: Client, r: number, name: string): Promise<void> {
  const { journal, random, remora } = client;
  const prefix = bankPrefix(r);
  const mirror = remora.kv.mirror({ prefix });
  const copy: Copy = { r, name, prefix, mirror };
  const endMs = Math.min(random.int(LIFE_MS_MAX), journal.roundLeftMs);
  const beganNs = journal.nowNs;
  while ((journal.nowNs - beganNs) / 1e6 < endMs && !mirror.signal.aborted) await compare(client, copy);
  await reach(client, copy);
  if (mirror.signal.aborted) journal.note('mirrors', r, { mirror: name, ended: String(mirror.signal.reason) });
  mirror.close();
}

interface Copy {
  readonly r: number;
  readonly name: string;
  readonly prefix: string;
  readonly mirror: KvMirror;
}

async function compare(client: Client, copy: Copy): Promise<void> {
  const { r, name, prefix, mirror } = copy;
  const sample = (await nextChange(client, copy)) ?? sampleOf(mirror);
  if (sample === undefined) return;
  const { revision, content } = sample;
  const question = { w: 'mirrors', r, q: { op: 'compare', mirror: name, prefix, revision, content } } as const;
  const read = () => client.remora.kv.range({ prefix }, { revision });
  await ask(client, question, read, ({ kvs }) => ({ content: contentOf(kvs) }));
}

interface Sample {
  readonly revision: number;
  readonly content: string;
}

/** What the copy shows in the moment of its next change; undefined if there is none for a while. */
async function nextChange({ random, pause }: Client, { mirror }: Copy): Promise<Sample | undefined> {
  const { promise, resolve } = withResolver<Sample | undefined>();
  const remove = mirror.onChange(() => resolve(sampleOf(mirror)));
  void pause(1 + random.int(SAMPLE_MS_MAX)).then(() => resolve(undefined));
  return promise.finally(remove);
}

/** Undefined: the copy does not exist yet, or no more. */
function sampleOf(mirror: KvMirror): Sample | undefined {
  if (mirror.revision === 0 || mirror.signal.aborted) return undefined;
  return { revision: mirror.revision, content: contentOf(mirror.values()) };
}

/** Writes a key, waits until the copy has it, and deletes it. */
async function reach(client: Client, { r, name, prefix, mirror }: Copy): Promise<void> {
  const key = `${prefix}m/${name}`;
  const put = await ask(client, { w: 'mirrors', r, q: { op: 'mark', mirror: name, prefix } }, () =>
    client.remora.kv.put(key, name),
  );
  if (put === undefined || mirror.signal.aborted) return;
  const { revision: asked } = put;
  const question = { w: 'mirrors', r, q: { op: 'reach', mirror: name, prefix, asked } } as const;
  const reached = Promise.race([mirror.reaches(asked).catch(() => undefined), client.pause(REACHES_MS_MAX)]);
  const result = () => ({ revision: mirror.revision, has: !mirror.signal.aborted && mirror.get(key) !== undefined });
  await ask(client, question, () => reached, result);
  await ask(client, { w: 'mirrors', r, q: { op: 'unmark', mirror: name, prefix } }, () => client.remora.kv.delete(key));
}

/** Keys, with the revisions of their values, and a digest of the values. */
function contentOf(pairs: readonly KvPair[]): string {
  const hash = createHash('sha256');
  const keys = pairs.map(({ key, value, modRevision, createRevision, version }) => {
    hash.update(value).update('\n');
    return `${key.toString()}@${createRevision}-${modRevision}#${version}`;
  });
  return `${keys.join(' ')} ${hash.digest('hex').slice(0, 12)}`;
}

function withResolver<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
