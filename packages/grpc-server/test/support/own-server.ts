/** The contract service on the server of this package. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type GrpcLimits, GrpcServer, type Metadata, type StreamCall, type UnaryCall } from '../../src/index.ts';
import type { Timers } from '../../src/timers.ts';
import {
  CONTRACT_SERVICE,
  type ContractServer,
  contractMethods,
  MESSAGE_BYTES_MAX,
  Observations,
  type StreamMethod,
  type TestMetadatum,
  type TestStreamCall,
  type TestUnaryCall,
} from './contract-service.ts';

const SYSTEM_TIMERS: Timers = {
  monotonicMs: () => performance.now(),
  setTimer: (delayMs, fn) => {
    const timer = setTimeout(fn, delayMs).unref();
    return { cancel: () => clearTimeout(timer) };
  },
  setImmediate: (fn) => void setImmediate(fn),
};

export interface OwnServer extends ContractServer {
  readonly server: GrpcServer;
  /** The limits that were reached, each as often as it was. */
  readonly refused: (keyof GrpcLimits)[];
}

export async function startOwnServer(limits: Partial<GrpcLimits> = {}): Promise<OwnServer> {
  const observed = new Observations();
  const refused: (keyof GrpcLimits)[] = [];
  const server = new GrpcServer({
    timers: SYSTEM_TIMERS,
    limits: { messageBytesMax: MESSAGE_BYTES_MAX, ...limits },
    onRefused: (limit) => refused.push(limit),
  });
  const methods = contractMethods(observed);
  server.addService(CONTRACT_SERVICE, {
    echo: (call) => methods.echo(unaryCall(call)),
    unary: (call) => methods.unary(unaryCall(call)),
    collect: (call) => streamCall(methods.collect, call),
    produce: (call) => streamCall(methods.produce, call),
    chat: (call) => streamCall(methods.chat, call),
  });
  const listener = createServer({ noDelay: true }, (socket: Socket) => server.accept(socket));
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    port: (listener.address() as AddressInfo).port,
    server,
    observed,
    refused,
    drain: () => {
      listener.close();
      return server.drain();
    },
    stop: () => {
      listener.close();
      server.close();
      return Promise.resolve();
    },
  };
}

function received(metadata: Metadata): readonly TestMetadatum[] {
  const found: TestMetadatum[] = [];
  for (const name of new Set([...metadata].map((field) => field.name))) {
    const values = name.endsWith('-bin') ? metadata.getBinary(name) : metadata.getAll(name);
    for (const value of values) found.push([name, value]);
  }
  return found;
}

function fields(pairs: readonly TestMetadatum[]): Readonly<Record<string, string | Uint8Array>> {
  return Object.fromEntries(pairs);
}

/** Puts what the methods of the suite expect in front of a call. */
function common(call: UnaryCall<Buffer, Buffer> | StreamCall<Buffer, Buffer>) {
  return {
    metadata: received(call.metadata),
    deadlineMs: call.deadlineMs,
    sendHead: (pairs: readonly TestMetadatum[]) => call.sendMetadata(fields(pairs)),
    fail: ({ code, message, trailers = [] }: Parameters<TestUnaryCall['fail']>[0]) =>
      call.fail(code, message, fields(trailers)),
    get onCancelled() {
      return call.onCancelled;
    },
    set onCancelled(fn: (() => void) | undefined) {
      call.onCancelled = fn;
    },
  };
}

function unaryCall(call: UnaryCall<Buffer, Buffer>): TestUnaryCall {
  const trailers = (pairs: readonly TestMetadatum[] = []) => (pairs.length === 0 ? undefined : fields(pairs));
  return Object.defineProperties(
    {
      // A message may lie in memory that is used again after the method has returned.
      request: Buffer.from(call.request),
      respond: (answer: Buffer, pairs?: readonly TestMetadatum[]) => call.respond(answer, trailers(pairs)),
    },
    Object.getOwnPropertyDescriptors(common(call)),
  ) as TestUnaryCall;
}

function streamCall(method: StreamMethod, call: StreamCall<Buffer, Buffer>): void {
  const made = Object.defineProperties(
    {
      write: (message: Buffer) => call.write(message),
      end: (pairs: readonly TestMetadatum[] = []) => call.end(pairs.length === 0 ? undefined : fields(pairs)),
      pause: () => call.pause(),
      resume: () => call.resume(),
      onRequest: undefined,
      onHalfClose: undefined,
      onDrain: undefined,
    },
    Object.getOwnPropertyDescriptors(common(call)),
  ) as TestStreamCall;
  method(made);
  call.onRequest = (message) => made.onRequest?.(Buffer.from(message));
  call.onHalfClose = () => made.onHalfClose?.();
  call.onDrain = () => made.onDrain?.();
}
