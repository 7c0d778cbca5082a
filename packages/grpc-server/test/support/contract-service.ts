/**
 * The service of the contract suite. Its methods are written once, against `TestCall`; each server adapts its own calls
 * to that. Messages are bytes. Where a method takes instructions, they are JSON.
 */

export interface TestStatus {
  readonly code: number;
  readonly message: string;
  readonly trailers?: readonly TestMetadatum[];
}

/** A value of a name that ends in `-bin` is bytes. */
export type TestMetadatum = readonly [name: string, value: string | Buffer];

/** What a method sees of a call. The hooks are set before the method returns. */
interface TestCall {
  readonly metadata: readonly TestMetadatum[];
  /** Milliseconds until the deadline; undefined if there is none. */
  readonly deadlineMs: number | undefined;
  onCancelled: (() => void) | undefined;
  sendHead(metadata: readonly TestMetadatum[]): void;
  fail(status: TestStatus): void;
}

export interface TestUnaryCall extends TestCall {
  readonly request: Buffer;
  respond(answer: Buffer, trailers?: readonly TestMetadatum[]): void;
}

export interface TestStreamCall extends TestCall {
  onRequest: ((message: Buffer) => void) | undefined;
  onHalfClose: (() => void) | undefined;
  onDrain: (() => void) | undefined;
  /** Returns false when the method should wait for `onDrain`. */
  write(message: Buffer): boolean;
  end(trailers?: readonly TestMetadatum[]): void;
  pause(): void;
  resume(): void;
}

type UnaryMethod = (call: TestUnaryCall) => void;
export type StreamMethod = (call: TestStreamCall) => void;

export interface ContractMethods {
  /** Answers the request itself. */
  readonly echo: UnaryMethod;
  /** Follows `Instructions`. */
  readonly unary: UnaryMethod;
  /** Answers `{ count, bytes }` at half-close, or at once at the message `stop`. */
  readonly collect: StreamMethod;
  /** Follows `Production`. */
  readonly produce: StreamMethod;
  /** Answers each message with itself, and reads no further while the client does not read. Knows `fail` and `hold`. */
  readonly chat: StreamMethod;
}

export interface Instructions {
  /** Never answers. */
  readonly wait?: true;
  readonly fail?: { readonly code: number; readonly message: string };
  /** Answers this many zeros. */
  readonly zeros?: number;
  /** Answers the metadata of the call, with its deadline, as `Reflection`. */
  readonly reflect?: true;
  readonly head?: readonly (readonly [string, string])[];
  readonly trailers?: readonly (readonly [string, string])[];
}

export interface Reflection {
  /** Values of names that end in `-bin` are in base64. */
  readonly metadata: readonly (readonly [string, string])[];
  readonly deadlineMs: number | null;
}

export interface Production {
  readonly count: number;
  readonly bytes: number;
  /** Ends with this instead of OK. */
  readonly fail?: { readonly code: number; readonly message: string };
  /** Writes the messages, then neither ends nor fails. */
  readonly stayOpen?: true;
}

/** What the methods have seen. */
export class Observations {
  cancelled = 0;
  /** Messages that `produce` has written, and `collect` and `chat` have received. */
  written = 0;
  received = 0;
  /** Streams that `hold` has paused. */
  readonly held: TestStreamCall[] = [];

  release(): void {
    for (const call of this.held.splice(0)) call.resume();
  }
}

/** A running server with the contract service. */
export interface ContractServer {
  readonly port: number;
  readonly observed: Observations;
  /** Resolves when all calls have ended. */
  drain(): Promise<void>;
  /** Ends everything now. */
  stop(): Promise<void>;
}

/** The largest message that the servers of the suite accept. */
export const MESSAGE_BYTES_MAX = 8 << 20;

export const CODE = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  resourceExhausted: 8,
  aborted: 10,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
} as const;

/** Definition of the service in the form of generated code. */
function method<Requests extends boolean, Responses extends boolean>(
  name: string,
  requestStream: Requests,
  responseStream: Responses,
) {
  const same = (bytes: Buffer): Buffer => bytes;
  return {
    path: `/test.Contract/${name}`,
    requestStream,
    responseStream,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  };
}

export const CONTRACT_SERVICE = {
  echo: method('Echo', false, false),
  unary: method('Unary', false, false),
  collect: method('Collect', true, false),
  produce: method('Produce', false, true),
  chat: method('Chat', true, true),
};

export function contractMethods(observed: Observations): ContractMethods {
  return {
    echo: (call) => call.respond(call.request),
    unary: (call) => followInstructions(call, observed),
    collect: (call) => collect(call, observed),
    produce: (call) => produce(call, observed),
    chat: (call) => chat(call, observed),
  };
}

function followInstructions(call: TestUnaryCall, observed: Observations): void {
  const { wait, fail, zeros, reflect, head, trailers } = JSON.parse(call.request.toString()) as Instructions;
  call.onCancelled = () => observed.cancelled++;
  if (head !== undefined) call.sendHead(head.map(fromText));
  const sent = trailers?.map(fromText);
  if (wait) return;
  if (fail !== undefined) call.fail({ ...fail, ...(sent === undefined ? {} : { trailers: sent }) });
  else if (reflect) call.respond(reflection(call), sent);
  else call.respond(Buffer.alloc(zeros ?? 0), sent);
}

function reflection({ metadata, deadlineMs }: TestCall): Buffer {
  const shown = metadata.map(([name, value]) => [name, typeof value === 'string' ? value : value.toString('base64')]);
  return Buffer.from(JSON.stringify({ metadata: shown, deadlineMs: deadlineMs ?? null }));
}

function fromText([name, value]: readonly [string, string]): TestMetadatum {
  return [name, name.endsWith('-bin') ? Buffer.from(value, 'base64') : value];
}

function collect(call: TestStreamCall, observed: Observations): void {
  let count = 0;
  let bytes = 0;
  let isOver = false;
  const answer = (): void => {
    if (isOver) return;
    isOver = true;
    call.write(Buffer.from(JSON.stringify({ count, bytes })));
    call.end();
  };
  call.onCancelled = () => observed.cancelled++;
  call.onRequest = (message) => {
    count++;
    bytes += message.length;
    observed.received++;
    if (message.toString('latin1', 0, 4) === 'stop') answer();
  };
  call.onHalfClose = answer;
}

function produce(call: TestStreamCall, observed: Observations): void {
  let left: Production | undefined;
  let count = 0;
  let isOver = false;
  const message = (bytes: number): Buffer => Buffer.alloc(bytes, count & 0xff);
  const goOn = (): void => {
    if (left === undefined || isOver) return;
    while (count < left.count) {
      count++;
      observed.written++;
      if (!call.write(message(left.bytes))) return;
    }
    isOver = true;
    if (left.fail !== undefined) call.fail(left.fail);
    else if (!left.stayOpen) call.end();
  };
  call.onCancelled = () => {
    isOver = true;
    observed.cancelled++;
  };
  call.onDrain = goOn;
  call.onRequest = (request) => {
    left = JSON.parse(request.toString()) as Production;
    goOn();
  };
}

function chat(call: TestStreamCall, observed: Observations): void {
  call.onCancelled = () => observed.cancelled++;
  call.onDrain = () => call.resume();
  call.onHalfClose = () => call.end();
  call.onRequest = (message) => {
    observed.received++;
    const text = message.toString('latin1', 0, 4);
    if (text === 'fail') {
      call.fail({ code: CODE.aborted, message: 'as asked' });
    } else if (text === 'hold') {
      observed.held.push(call);
      call.pause();
    } else if (!call.write(message)) {
      call.pause();
    }
  };
}
