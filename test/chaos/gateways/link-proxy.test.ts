import { nodeClock, openFramePort, type ServiceError } from '@remora/base';
import {
  createRpcRegistry,
  createRpcService,
  dialRpc,
  LinkCaller,
  type Method,
  masterDrawRevisions,
  type RangeReply,
  rangeExecute,
  type TxnCommand,
} from '@remora/protocol';
import { afterEach, expect, test } from 'vitest';
import { freePorts } from '../../e2e/free-ports.ts';
import { type FrameEar, LinkProxy } from './link-proxy.ts';
import { LinkTap } from './link-tap.ts';

const HOST = '127.0.0.1';
const GATEWAY = { clusterId: 'c', nodeId: 7, incarnation: 'g' };
const NODE = { clusterId: 'c', nodeId: 2, incarnation: 'n' };

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const clean of cleanups.splice(0).reverse()) clean();
});

/** A node that answers everything, and a gateway that reaches it through a proxy. */
async function linked(listen: () => FrameEar) {
  const arrived: string[] = [];
  const registry = createRpcRegistry();
  registry.handle(rangeExecute, ({ body }, _context, done) => {
    arrived.push(body.kind === 'query' ? body.query.type : body.command.type);
    const reply: RangeReply = { revision: 1, raftTerm: 1, rangeTimeMs: 1, result: { type: 'txnForget' } };
    done(undefined, reply);
  });
  registry.handle(masterDrawRevisions, (_request, _context, done) => {
    arrived.push('draw');
    done(undefined, { newest: 1, blocks: [] });
  });
  const service = createRpcService({
    ...{ identity: () => NODE, registry, clock: nodeClock() },
    identify: ({ nodeId }) => ({ kind: 'node', nodeId }),
  });
  const [nodePort = 0, port = 0] = await freePorts(HOST, 2);
  const target = `${HOST}:${nodePort}`;
  const options = { clock: nodeClock(), host: HOST, port: nodePort };
  const listening = await openFramePort({ ...options, services: [service] });
  const proxy = new LinkProxy({ target, host: HOST, port, listen });
  await proxy.open();
  const link = dialRpc({ address: proxy.address, nodeId: 2 }, GATEWAY, nodeClock());
  const caller = new LinkCaller({ link, clock: nodeClock() });
  cleanups.push(() => {
    service.close();
    listening.close();
    proxy.close();
  });
  const call = <Q, A>(method: Method<Q, A>, request: Q): Promise<string> =>
    new Promise((resolve) => {
      caller.call(method, request, { timeoutMs: 5_000 }, (error: ServiceError | undefined) =>
        resolve(error?.code ?? 'answered'),
      );
    });
  const execute = (command: TxnCommand) => {
    const rest = { rangeId: 1, epoch: { confVersion: 1, version: 1 }, requestId: 'r', authRevision: 0, deadlineMs: 1 };
    return call(rangeExecute, { ...rest, body: { kind: 'command', command } });
  };
  return { arrived, call, execute };
}

const primaryKey = Buffer.from('\x03a');
const txn = { txnId: 't', requestId: 'r', primaryKey };
const prepare = (part: number): TxnCommand => ({
  type: 'txnPrepare',
  ...txn,
  part,
  compares: [],
  ops: [],
  expiresMs: 9,
});
const decide = (type: 'abort' | 'push'): TxnCommand => ({ type: 'txnDecide', ...txn, decision: { type } });
const commit: TxnCommand = {
  ...{ type: 'txnDecide', ...txn },
  decision: { type: 'commit', revision: 5, branches: [0], others: [] },
};
const resolve: TxnCommand = {
  ...{
    type: 'txnResolve',
    txnId: 't',
    requestId: 'r',
    part: 1,
    span: { start: primaryKey, end: Buffer.from('\x03b') },
  },
  resolution: { type: 'abort' },
};
const forget: TxnCommand = { type: 'txnForget', txnId: 't', primaryKey };

test('every message of a transaction is heard as it is sent, and as it is answered', async () => {
  const heard: string[] = [];
  const { call, execute } = await linked(() => {
    const tap = new LinkTap();
    return {
      toNode: (frame) => heard.push(...tap.asked(frame).map((message) => `${message}?`)) >= 0,
      toGateway: (frame) => heard.push(...tap.answered(frame).map((message) => `${message}!`)) >= 0,
    };
  });
  for (const command of [prepare(0), prepare(1)]) expect(await execute(command)).toBe('answered');
  await call(masterDrawRevisions, { floor: 1, draws: [] });
  await call(masterDrawRevisions, { floor: 1, draws: [{ rangeId: 0, count: 1 }] });
  for (const command of [commit, decide('push'), decide('abort'), resolve, forget]) await execute(command);
  const messages = ['prepare primary', 'prepare', 'draw', 'commit', 'abort', 'resolve', 'forget'];
  expect(heard).toEqual(messages.flatMap((message) => [`${message}?`, `${message}!`]));
});

test('what is held back does not arrive, nor anything behind it on that link', async () => {
  const { arrived, execute } = await linked(() => {
    const tap = new LinkTap();
    return { toNode: (frame) => !tap.asked(frame).includes('commit'), toGateway: () => true };
  });
  expect(await execute(prepare(0))).toBe('answered');
  const answers = [execute(commit), execute(resolve)];
  expect(await Promise.all(answers)).toEqual(['UNKNOWN_OUTCOME', 'UNKNOWN_OUTCOME']);
  expect(arrived).toEqual(['txnPrepare']);
});

test('an answer that is held back was to something that has arrived', async () => {
  const { arrived, execute } = await linked(() => {
    const tap = new LinkTap();
    return {
      toNode: (frame) => tap.asked(frame).length >= 0,
      toGateway: (frame) => !tap.answered(frame).includes('commit'),
    };
  });
  expect(await execute(commit)).toBe('UNKNOWN_OUTCOME');
  expect(arrived).toEqual(['txnDecide']);
});
