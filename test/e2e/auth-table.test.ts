/**
 * Who may do what, at the doors of a real node: every command and query of the Pipe, every method of gRPC, every route
 * of HTTP, for each kind of caller.
 *
 * The rows are typed by the unions and the generated services, and compared with the lists of services, routes and
 * methods that a node serves: whatever has no row does not compile, or fails here.
 */
import {
  type Command,
  pipeCommand,
  pipeConditions,
  pipeGateways,
  pipeLockWatch,
  pipeLogIn,
  pipeQuery,
  pipeView,
  pipeWatch,
  type Query,
} from '@remora/protocol';
import * as etcd from '@remora/protocol/etcd';
import * as remora from '@remora/protocol/remora';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OWN_PATHS } from '../../packages/cli/src/node/ports/http-server.ts';
import { toJson } from '../../packages/gateway/src/etcd/json/json-codec.ts';
import { ETCD_PATHS } from '../../packages/gateway/src/etcd/json/routes.ts';
import { ROUTES } from '../../packages/gateway/src/http/routes.ts';
import * as pipeMethods from '../../packages/protocol/src/pipe/methods.ts';
import {
  type Answer,
  askGrpc,
  askHttp,
  askJson,
  askPipe,
  type HttpRequest,
  type Method,
  openPipe,
  whole,
} from './auth-table/doors.ts';
import { ETCD_ROWS, ETCD_SERVICES } from './auth-table/etcd-rows.ts';
import { HTTP_ROWS, PROBES } from './auth-table/http-rows.ts';
import { COMMANDS, QUERIES } from './auth-table/pipe-rows.ts';
import { REMORA_ROWS, REMORA_SERVICES } from './auth-table/remora-rows.ts';
import {
  ANY_USER,
  EVERYBODY,
  KEY_READERS,
  LOCK_READERS,
  PRINCIPALS,
  ROOT,
  type Row,
  STEERERS,
  type Verdict,
  type Verdicts,
  type Who,
} from './auth-table/verdicts.ts';
import { b, World } from './auth-table/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world?.stop());

/**
 * Lets each caller send the request of a row, and compares what all of them got. They send it at the same time, unless
 * something has to be undone.
 */
async function expectRow<Request>(row: Row<Request>, ask: (request: Request, who: Who) => Promise<Answer>) {
  const says = new Map<Who, string>();
  const verdictOf = async (who: Who): Promise<readonly [Who, Verdict]> => {
    const answer = await ask(await row.request(world, who), who);
    const isInOrder = answer.verdict === 'INVALID_ARGUMENT' && row.despite?.test(answer.says) === true;
    const verdict = isInOrder ? 'allowed' : answer.verdict;
    says.set(who, answer.says);
    if (verdict === 'allowed') await row.after?.(world);
    return [who, verdict];
  };
  const got: (readonly [Who, Verdict])[] = [];
  if (row.after === undefined) got.push(...(await Promise.all(PRINCIPALS.map(verdictOf))));
  else for (const who of PRINCIPALS) got.push(await verdictOf(who));
  expect(Object.fromEntries(got), [...says].map((each) => each.join(': ')).join('\n')).toEqual(row.may);
}

interface Named<Request> {
  readonly name: string;
  readonly row: Row<Request>;
}

/** The rows of a table, with the name of the test of each. */
function named<Request>(tables: Readonly<Record<string, readonly Row<Request>[]>>): readonly Named<Request>[] {
  return Object.entries(tables).flatMap(([name, rows]) =>
    rows.map((row) => ({ name: row.name === undefined ? name : `${name}: ${row.name}`, row })),
  );
}

const SERVICES: Readonly<Record<string, Readonly<Record<string, Method<unknown, unknown>>>>> = {
  ...ETCD_SERVICES,
  ...REMORA_SERVICES,
} as never;
const GRPC_ROWS: Readonly<Record<string, Readonly<Record<string, readonly Row<object>[]>>>> = {
  ...ETCD_ROWS,
  ...REMORA_ROWS,
};

describe.each(Object.entries(GRPC_ROWS))('gRPC: %s', (service, methods) => {
  for (const [name, rows] of Object.entries(methods)) {
    test.each(named({ [name]: rows }))('$name', async ({ row }) => {
      const method = SERVICES[service]?.[name] as Method<unknown, unknown>;
      await expectRow(row, (request, who) => askGrpc(world, method, request, who));
    });
  }
});

describe.each(Object.values(ETCD_PATHS))("etcd's JSON gateway: $service", ({ service, paths }) => {
  for (const [name, each] of Object.entries(paths as Readonly<Record<string, readonly string[]>>)) {
    const rows = GRPC_ROWS[service]?.[name] ?? [];
    test.each(each.flatMap((path) => named({ [path]: rows }).map((one) => ({ ...one, path }))))(
      '$name',
      async ({ path, row }) => {
        const method = SERVICES[service]?.[name] as Method<unknown, unknown>;
        const type = etcd.ETCD_SCHEMA.services[service]?.[name]?.request ?? '';
        await expectRow(row, (request, who) => askJson(world, path, toJson(type, whole(method, request)), who));
      },
    );
  }
});

describe('HTTP', () => {
  test.each(named<HttpRequest>(HTTP_ROWS))('$name', ({ row }) =>
    expectRow(row, (request, who) => askHttp(world, request, who)),
  );

  test.each(Object.entries({ ...PROBES, '/version': EVERYBODY }))('GET %s', async (path, may) => {
    for (const port of ['http', 'health', 'client'] as const) {
      if (port === 'health' && path === '/version') continue;
      const request = () => ({ method: 'GET', path });
      await expectRow({ may, request }, (asked, who) => askHttp(world, asked, who, world.cluster.node(1)[port]));
    }
  });
});

const CALL = { timeoutMs: 20_000 };

describe('the Pipe', () => {
  test.each(named<Command>(COMMANDS))('the command $name', ({ row }) =>
    expectRow(row, (command, who) => {
      const requestId = world.fresh('r').toString();
      return askPipe(world, pipeCommand, { ...CALL, command, requestId }, who);
    }),
  );

  test.each(named<Query>(QUERIES))('the query $name', ({ row }) =>
    expectRow(row, (query, who) => askPipe(world, pipeQuery, { ...CALL, query }, who)),
  );
});

/** What else clients call over the Pipe, by the names of the methods in the code. */
interface Call {
  readonly name?: string;
  readonly may: Verdicts;
  readonly ask: (who: Who) => Promise<Answer>;
}

function watchKeys(end: string): (who: Who) => Promise<Answer> {
  const span = { key: b('a/'), end: b(end), startRevision: 0, noPut: false, noDelete: false, prevKv: false };
  return (who) => openPipe(world, pipeWatch, { kind: 'create', ...span }, who);
}

function watchLocks(name: string, single: boolean): (who: Who) => Promise<Answer> {
  return (who) => openPipe(world, pipeLockWatch, { namespace: 'default', name: b(name), single }, who);
}

const asStranger = () => ({ with: 'token', token: world.token('stranger') ?? '' }) as const;

const OTHER_CALLS: Readonly<Record<string, readonly Call[]>> = {
  pipeView: [{ may: ANY_USER, ask: (who) => askPipe(world, pipeView, undefined, who) }],
  pipeConditions: [{ may: ANY_USER, ask: (who) => askPipe(world, pipeConditions, undefined, who) }],
  // To find the gateway at which one logs in.
  pipeGateways: [{ may: EVERYBODY, ask: (who) => askPipe(world, pipeGateways, undefined, who) }],
  pipeLogIn: [{ may: EVERYBODY, ask: () => askPipe(world, pipeLogIn, asStranger(), world.newPipe()) }],
  pipeWatch: [
    { may: KEY_READERS, ask: watchKeys('a0') },
    { name: 'to the last key', may: ROOT, ask: watchKeys('') },
  ],
  pipeLockWatch: [
    { may: LOCK_READERS, ask: watchLocks('a/l', true) },
    { name: 'a prefix', may: LOCK_READERS, ask: watchLocks('a/', false) },
    { name: 'all locks', may: STEERERS, ask: watchLocks('', false) },
  ],
};
const OTHERS = Object.entries(OTHER_CALLS).flatMap(([method, calls]) =>
  calls.map(({ name, ...call }) => ({ title: name === undefined ? method : `${method}: ${name}`, ...call })),
);

test.each(OTHERS)('the Pipe: $title', ({ may, ask }) =>
  expectRow({ may, request: () => undefined }, (_request, who) => ask(who)),
);

describe('what belongs to another user', () => {
  test('is not met under the request id that its user has chosen (AB6 of authorised-backend.ts)', async () => {
    const open = async (who: Who) => {
      const asked = { ttlMs: 60_000n, requestId: 'nightly-job' };
      const { session } = await world.allow(remora.LockService.openSession, asked, who);
      return session;
    };
    const first = await open('lockUser');
    expect(await open('lockUser')).toEqual(first);
    for (const who of ['steerer', 'stranger', 'root'] as const) {
      const other = await open(who);
      expect(other?.id).not.toBe(first?.id);
      expect(other?.incarnation).not.toBe(first?.incarnation);
    }
  });

  test('shows its TTL, and not what its client says of itself (AB7 of authorised-backend.ts)', async () => {
    const attributes = { host: 'a-host' };
    const { session } = await world.allow(remora.LockService.openSession, { ttlMs: 60_000n, attributes }, 'lockUser');
    const query: Query = { type: 'leaseTimeToLive', id: session?.id ?? 0n, keys: false };
    const told = async (who: Who) => {
      const { response } = await askPipe(world, pipeQuery, { ...CALL, query }, who);
      return response?.result.type === 'leaseTimeToLive' ? response.result.lease : expect.fail(who);
    };
    const [own, others] = [await told('lockUser'), await told('stranger')];
    expect([own.attributes, own.owner]).toEqual([attributes, 'lockUser']);
    expect([others.attributes, others.owner, others.grantedTtlMs]).toEqual([{}, undefined, 60_000]);
    expect((await told('steerer')).attributes).toEqual(attributes);
  });
});

describe('nothing is without a row', () => {
  /** The generated services of a module. */
  const servicesOf = (module: object): readonly string[] =>
    Object.entries(module)
      .filter(([name]) => name.endsWith('Service'))
      .map(([, service]) => Object.values(service as Readonly<Record<string, Method<unknown, unknown>>>)[0]?.path)
      .map((path) => path?.split('/')[1] ?? '');

  test('services and methods of gRPC', () => {
    const modules = [etcd, etcd.v3lockpb, etcd.v3electionpb, etcd.health, remora, remora.admin, remora.auth];
    expect(Object.keys(GRPC_ROWS).sort()).toEqual(modules.flatMap(servicesOf).sort());
    for (const [service, methods] of Object.entries(SERVICES)) {
      expect([service, Object.keys(GRPC_ROWS[service] ?? {}).sort()]).toEqual([service, Object.keys(methods).sort()]);
    }
    const ofJson = Object.values(ETCD_PATHS).map(({ service }) => service);
    expect(Object.keys(ETCD_ROWS).sort()).toEqual(ofJson.sort());
  });

  test('routes of HTTP', () => {
    expect(Object.keys(HTTP_ROWS).sort()).toEqual(ROUTES.map(({ method, path }) => `${method} ${path}`).sort());
    expect(Object.keys(PROBES).sort()).toEqual([...OWN_PATHS].sort());
  });

  test('methods of the Pipe', () => {
    const methods = Object.entries(pipeMethods).filter(([, value]) => typeof value === 'object' && 'callers' in value);
    const named = ['pipeCommand', 'pipeQuery', ...Object.keys(OTHER_CALLS)];
    expect(named.sort()).toEqual(methods.map(([name]) => name).sort());
  });
});
