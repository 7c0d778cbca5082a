/** The API of administration in front of masters that a test plays. */
import { FIRST_AUTH } from '@remora/auth';
import { type Clock, SeededRandom, ServiceError } from '@remora/base';
import { AdminApi, type Backend } from '@remora/gateway';
import {
  createLocalChannel,
  createRpcRegistry,
  type Done,
  type Method,
  type NodeNow,
  nodeNow,
  type RpcChannel,
  type RpcDispatcher,
} from '@remora/protocol';

/** Returns the reply of the masters' leader to a method, or the error; also that of every node to `node.now`. */
export type PlayedMasters = (method: string, request: unknown) => unknown;

const NO_MASTERS: PlayedMasters = () => new ServiceError('UNAVAILABLE', 'the masters are not part of this test');

/** What nodes answer, by their ids. */
export type PlayedNodes = ReadonlyMap<number, RpcDispatcher>;

export function adminApi(
  backend: Backend,
  clock: Clock,
  masters: PlayedMasters = NO_MASTERS,
  nodes: PlayedNodes = new Map(),
): AdminApi {
  const usual = createRpcRegistry();
  usual.handle(nodeNow, (_request, _context, done) => done(undefined, masters(nodeNow.name, undefined) as NodeNow));
  const channel = (nodeId: number): RpcChannel => createLocalChannel({ registry: nodes.get(nodeId) ?? usual, clock });
  return new AdminApi({
    ...{ backend, clock, random: new SeededRandom(1) },
    nodes: () => [],
    dialer: { channel, channelTo: () => channel(0) },
    health: { completed: (report) => report, withoutMasters: () => undefined },
    known: { image: FIRST_AUTH },
    master: {
      call: <Request, Reply>(method: Method<Request, Reply>, request: Request, _: unknown, done: Done<Reply>) => {
        const reply = masters(method.name, request);
        if (reply instanceof ServiceError) done(reply, undefined);
        else done(undefined, reply as Reply);
        return { cancel() {} };
      },
    },
  });
}
