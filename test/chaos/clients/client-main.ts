/**
 * One client process: many workers that load the cluster and record what they observe.
 *
 * M1. It ends together with the process that started it.
 */
import { SeededRandom } from '@remora/base';
import { connect, type RemoraClient } from 'remora';
import { pause } from '../../e2e/eventually.ts';
import { Journal } from '../journal/journal.ts';
import { type Access, connectOptions, secured, withPassword } from '../users/access.ts';
import { type Passwords, VISITORS } from '../users/rights.ts';
import { Auditor } from '../workloads/auditor.ts';
import { LOADS } from '../workloads/index.ts';
import type { Client, Turn, Visits } from '../workloads/workload.ts';
import { type ClientArguments, type FromClient, HASTY_MS, PATIENT_MS, type ToClient } from './messages.ts';
import { RawKv } from './raw-kv.ts';
import { ResourceOverIpc } from './resource-over-ipc.ts';

const TICK_MS = 200;
const SESSION_TTL_MS = 5_000;
const VISIT_CONNECT_MS = 3_000;
/** Clients in one process. */
const CLIENTS_MAX = 100;

const args: ClientArguments = JSON.parse(process.argv[2] ?? '{}');
process.on('disconnect', () => process.exit(1)); // M1.

async function main(): Promise<void> {
  const journal = new Journal({ file: args.journal, beganNs: BigInt(args.beganNs), roundMs: args.roundMs });
  const tick = setInterval(() => journal.tick(), TICK_MS);
  await (args.role === 'auditor' ? audit(journal) : load(journal));
  clearInterval(tick);
  journal.tick();
  journal.stop();
  await send({ type: 'stopped' });
  process.exit(0);
}

async function audit(journal: Journal): Promise<void> {
  const remora = await open(PATIENT_MS);
  const auditor = new Auditor({ journal, remora, graceMs: PATIENT_MS + 1_000, pause });
  const stopped = new Promise<void>((resolve, reject) => {
    process.on('message', (message: ToClient) => {
      if (message.type === 'stop') auditor.finish().then(resolve, reject);
      else if (message.type === 'compact') auditor.compact(message.back).catch(unlessRefused);
    });
    auditor.run().catch(reject);
  });
  await send({ type: 'ready' });
  await stopped;
  await remora.close();
}

async function load(journal: Journal): Promise<void> {
  const { workloads, clients } = LOADS[args.load];
  const resource = new ResourceOverIpc((message) => void send(message));
  const visits = visitsAs();
  const users = await Promise.all(Array.from({ length: clients }, (_, i) => begin({ journal, resource, visits, i })));
  let stopping = false;
  process.on('message', (message: ToClient) => {
    if (message.type === 'stop') stopping = true;
  });
  await send({ type: 'ready' });
  const work = async ({ client }: User, turn: Turn): Promise<void> => {
    while (!stopping) {
      await turn();
      await pause(client.random.int(2 * args.thinkMs + 1));
    }
  };
  await Promise.all(
    users.flatMap((user) =>
      workloads.flatMap((makeWorkers) => makeWorkers(user.client)).map((turn) => work(user, turn)),
    ),
  );
  await Promise.all(users.map(({ close }) => close()));
}

interface User {
  readonly client: Client;
  readonly close: () => Promise<void>;
}

/** One of this process's clients, with separate connections and a separate session. */
async function begin(given: Pick<Client, 'journal' | 'resource' | 'visits'> & { readonly i: number }): Promise<User> {
  const { i, ...rest } = given;
  const { endpoints, home, seed } = args;
  const access = args.access?.load;
  const name = i === 0 ? args.name : `${args.name}.${i}`;
  const [remora, hasty] = await Promise.all([open(PATIENT_MS), open(HASTY_MS)]);
  const endpoint = endpoints[home] ?? '';
  const raw = new RawKv({ name: `${name}.raw`, endpoint, timeoutMs: HASTY_MS, access });
  const loyal = new RawKv({ name: `${name}.loyal`, endpoint, timeoutMs: PATIENT_MS, access });
  const random = new SeededRandom(seed * CLIENTS_MAX + i);
  return {
    client: { ...rest, name, random, endpoints, access, remora, hasty, raw, loyal, pause, newestRevision: 0 },
    async close() {
      for (const each of [raw, loyal]) each.close();
      await Promise.all([remora.close(), hasty.close()]);
    },
  };
}

/**
 * Connects, however long it takes: a fault may be active. Addresses that nodes advertise are not used, because they
 * would bypass the faults.
 */
async function open(requestTimeout: number): Promise<RemoraClient> {
  const endpoints = secured(args.endpoints, args.access);
  // One of the processes logs in with a password, the others with a certificate.
  const load = args.access?.load;
  const access = load !== undefined && args.home > 0 ? certificateOf(load) : load;
  for (;;) {
    const opened = await connect({
      ...{ endpoints, discover: false, requestTimeout, sessionTtl: SESSION_TTL_MS },
      ...connectOptions(access),
    }).catch(unlessRefused);
    if (opened !== undefined) return opened;
  }
}

function certificateOf({ caFile, certFile, keyFile }: Access): Access {
  return { caFile, certFile, keyFile };
}

/** Undefined: the cluster has no users. */
function visitsAs(): Visits | undefined {
  const { access } = args;
  if (access === undefined) return undefined;
  let passwords: Passwords = args.passwords;
  process.on('message', (message: ToClient) => {
    if (message.type === 'passwords') passwords = message.passwords;
  });
  return {
    visitors: VISITORS,
    password: (user) => passwords[user],
    connect: (user, password) => {
      const own = access.visitors[user];
      if (own === undefined) throw new Error(`nobody knows ${user}`);
      return connect({
        ...{ endpoints: secured(args.endpoints, access), discover: false, sessionTtl: SESSION_TTL_MS },
        ...{ requestTimeout: PATIENT_MS, connectTimeout: VISIT_CONNECT_MS },
        ...connectOptions(password === null ? own : withPassword(own, user, password)),
      });
    },
  };
}

function unlessRefused(error: unknown): undefined {
  if (!(error instanceof Error && error.name === 'RemoraError')) throw error;
  return undefined;
}

function send(message: FromClient): Promise<void> {
  return new Promise((resolve) => process.send?.(message, () => resolve()));
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
