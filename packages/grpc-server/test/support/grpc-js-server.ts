/** The contract service on the reference server: grpc-js. */
import type { EventEmitter } from 'node:events';
import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerErrorResponse,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
} from '@grpc/grpc-js';
import {
  CONTRACT_SERVICE,
  type ContractServer,
  contractMethods,
  MESSAGE_BYTES_MAX,
  Observations,
  type StreamMethod,
  type TestMetadatum,
  type TestStatus,
  type TestStreamCall,
  type TestUnaryCall,
} from './contract-service.ts';

export async function startGrpcJs(): Promise<ContractServer> {
  const observed = new Observations();
  const methods = contractMethods(observed);
  const server = new Server({ 'grpc.max_receive_message_length': MESSAGE_BYTES_MAX });
  server.addService(CONTRACT_SERVICE, {
    echo: unary(methods.echo),
    unary: unary(methods.unary),
    collect: (call: ServerReadableStream<Buffer, Buffer>, done: sendUnaryData<Buffer>) =>
      methods.collect(clientStream(call, done)),
    produce: (call: ServerWritableStream<Buffer, Buffer>) => serverStream(methods.produce, call),
    chat: (call: ServerDuplexStream<Buffer, Buffer>) => methods.chat(bidiStream(call)),
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
  return {
    port,
    observed,
    drain: () => new Promise((resolve) => server.tryShutdown(() => resolve())),
    stop: () => {
      server.forceShutdown();
      return Promise.resolve();
    },
  };
}

type AnyCall =
  | ServerUnaryCall<Buffer, Buffer>
  | ServerReadableStream<Buffer, Buffer>
  | ServerWritableStream<Buffer, Buffer>
  | ServerDuplexStream<Buffer, Buffer>;

function metadata(pairs: readonly TestMetadatum[] = []): Metadata {
  const made = new Metadata();
  for (const [name, value] of pairs) made.add(name, value);
  return made;
}

function received(call: AnyCall): readonly TestMetadatum[] {
  const names = Object.keys(call.metadata.getMap());
  return names.flatMap((name) => call.metadata.get(name).map((value): TestMetadatum => [name, value]));
}

function deadlineMs(call: AnyCall): number | undefined {
  const deadline = call.getDeadline();
  const at = typeof deadline === 'number' ? deadline : deadline.getTime();
  return Number.isFinite(at) ? at - Date.now() : undefined;
}

function errorOf({ code, message, trailers }: TestStatus): ServerErrorResponse {
  return Object.assign(new Error(message), { code, details: message, metadata: metadata(trailers) });
}

/** The fields that all calls share. */
function common(call: AnyCall) {
  const made = {
    metadata: received(call),
    deadlineMs: deadlineMs(call),
    onCancelled: undefined as (() => void) | undefined,
    sendHead: (pairs: readonly TestMetadatum[]) => call.sendMetadata(metadata(pairs)),
  };
  const events: EventEmitter = call;
  events.on('cancelled', () => made.onCancelled?.());
  return made;
}

function unary(method: (call: TestUnaryCall) => void) {
  return (call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>): void =>
    method(
      Object.assign(common(call), {
        request: call.request,
        respond: (answer: Buffer, trailers?: readonly TestMetadatum[]) => done(null, answer, metadata(trailers)),
        fail: (status: TestStatus) => done(errorOf(status)),
      }),
    );
}

function hooks() {
  return {
    onRequest: undefined as ((message: Buffer) => void) | undefined,
    onHalfClose: undefined as (() => void) | undefined,
    onDrain: undefined as (() => void) | undefined,
  };
}

function reading(
  call: ServerReadableStream<Buffer, Buffer> | ServerDuplexStream<Buffer, Buffer>,
  made: TestStreamCall,
) {
  call.on('data', (message: Buffer) => made.onRequest?.(message));
  call.on('end', () => made.onHalfClose?.());
  call.on('error', () => undefined);
}

function clientStream(call: ServerReadableStream<Buffer, Buffer>, done: sendUnaryData<Buffer>): TestStreamCall {
  let answer: Buffer | undefined;
  const made = Object.assign(common(call), hooks(), {
    write: (message: Buffer) => {
      answer = message;
      return true;
    },
    end: (trailers?: readonly TestMetadatum[]) => done(null, answer, metadata(trailers)),
    fail: (status: TestStatus) => done(errorOf(status)),
    pause: () => void call.pause(),
    resume: () => void call.resume(),
  });
  reading(call, made);
  return made;
}

function writing(call: ServerWritableStream<Buffer, Buffer> | ServerDuplexStream<Buffer, Buffer>) {
  const made = Object.assign(common(call), hooks(), {
    write: (message: Buffer) => call.write(message),
    end: (trailers?: readonly TestMetadatum[]) => call.end(metadata(trailers)),
    fail: (status: TestStatus) => void call.emit('error', errorOf(status)),
  });
  call.on('drain', () => made.onDrain?.());
  return made;
}

function serverStream(method: StreamMethod, call: ServerWritableStream<Buffer, Buffer>): void {
  const made = Object.assign(writing(call), { pause: () => undefined, resume: () => undefined });
  method(made);
  made.onRequest?.(call.request);
  made.onHalfClose?.();
}

function bidiStream(call: ServerDuplexStream<Buffer, Buffer>): TestStreamCall {
  const made = Object.assign(writing(call), { pause: () => void call.pause(), resume: () => void call.resume() });
  reading(call, made);
  return made;
}
