/** Leases with keys. They are renewed for a while, then revoked or left to expire. */
import { ServiceError } from '@remora/base';
import { type Client, type MakeWorkers, namesFor } from './workload.ts';

const TTL_MS_MIN = 1_000;
const TTL_MS_SPREAD = 3_000;
const ROUNDS_MAX = 5;
export const LEASES = 'lease/';

export const leases: MakeWorkers = (client) => {
  const name = namesFor(client, 'k');
  return [() => live(client, name())];
};

async function live(client: Client, name: string): Promise<void> {
  const { journal, random, remora } = client;
  const r = journal.round;
  const release = journal.hold(r);
  const ttlMs = TTL_MS_MIN + random.int(TTL_MS_SPREAD);
  const key = `${LEASES}${r}/${name}`;
  const granted = await asked(
    client,
    r,
    { op: 'grant', key },
    () => remora.lease.grant(ttlMs),
    ({ id, ttlMs: given }) => ({ ttlMs: given, id: String(id) }),
  );
  if (granted !== undefined) {
    const { id } = granted;
    await asked(client, r, { op: 'put', key }, () => remora.kv.put(key, 'x', { lease: id }));
    for (let rounds = random.int(ROUNDS_MAX); rounds > 0; rounds--) {
      await client.pause(random.int(TTL_MS_MIN));
      await asked(client, r, { op: 'keepAlive', key }, () => remora.lease.keepAlive(id));
    }
    if (random.int(2) === 0) await asked(client, r, { op: 'revoke', key }, () => remora.lease.revoke(id));
  }
  release();
}

/** The name of a lease is the key that belongs to it. */
interface Question {
  readonly op: 'grant' | 'put' | 'keepAlive' | 'revoke';
  readonly key: string;
}

/** The answer. Undefined: there was none, or one of another type. */
async function asked<T>(
  client: Client,
  r: number,
  question: Question,
  ask: () => Promise<T>,
  told: (answer: T) => object = () => ({}),
): Promise<T | undefined> {
  const operation = client.journal.begin('leases', r, question);
  try {
    const answer = await ask();
    operation.end('done', { a: told(answer) });
    return answer;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { code } = error;
    // "There is no such lease" is an answer.
    if (code === 'LEASE_NOT_FOUND') operation.end('done', { code, a: { gone: true } });
    else operation.end(error.mayBeApplied ? 'unknown' : 'refused', { code });
    return undefined;
  }
}
