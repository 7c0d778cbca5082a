/**
 * One end of a stream of frames between two processes, over a socket. It carries all communication among nodes, and
 * between the SDK and gateways. It replaces HTTP/2 at the cost of one write and one read per frame.
 *
 * FS1. Both ends identify themselves first: the first frame in each direction is a *hello*. No other frame is delivered
 *      before it.
 * FS2. An end that closes the stream states its reason if it can, and the other side receives it. `onEnd` is called
 *      once, unless this side ended the stream.
 * FS3. A silent peer is probed, and considered dead if it does not answer. Received data is processed before the timer:
 *      a process that was stopped for a while reads first. A side that receives data but has none to send sends signs
 *      of life unprompted, because the other side's probe may be queued behind megabytes in transit. A large frame on a
 *      slow line counts as a sign of life on both sides long before it is complete.
 * FS4. The size that a peer announces is checked before any byte is kept, and all partly received data of a port is
 *      bounded together (input-budget.ts). Data that the peer has not yet taken is counted (`pendingBytes`) and bounded
 *      by its sender; the data waiting for all peers of a port is bounded together (output-budget.ts).
 */
import type { Socket } from 'node:net';
import { parseBoundedJson } from '../../bounded-json.ts';
import type { Clock, Timer } from '../../clock.ts';
import { type ErrorCode, isErrorCode } from '../../errors.ts';
import { loopSection } from '../../loop-sections.ts';
import { type CertificateNames, peerCertificateOf } from '../tls/peer-certificate.ts';
import { connectionErrorText } from '../tls/tls-error-text.ts';
import { FrameError, type FrameKind, FrameParser, frameBytes } from './frame-parser.ts';
import type { InputAccount } from './input-budget.ts';
import { joinRound } from './look-rounds.ts';
import type { OutputAccount, OutputBudget } from './output-budget.ts';
import { verifiedName } from './verified-name.ts';

/** How an end identifies itself: `service` names the purpose of the stream; the other words belong to the service. */
export type Hello = Readonly<Record<string, string>>;

/** Why a stream is over. The code is present only if the other end sent it: a broken connection has none. */
export interface StreamEnd {
  readonly code?: ErrorCode;
  readonly message: string;
  /** The stream was dialled, and every address refused the connection: no process listens there. */
  readonly connectionRefused?: boolean;
}

export interface FrameHandlers {
  /** Some bytes arrived, perhaps only a part of a frame, or a frame that is not delivered: a sign of life (FS3). */
  onHeard?(): void;
  /** `frame` belongs to the receiver. */
  onFrame(frame: Buffer): void;
  /** The socket took everything, after `send` had returned false. */
  onDrain(): void;
  onEnd(end: StreamEnd): void;
}

export interface GreetedHandlers extends FrameHandlers {
  /** The other end's hello; comes before any frame. */
  onHello(hello: Hello): void;
}

export interface FrameStreamOptions {
  readonly clock: Clock;
  /** The largest accepted frame; 64 MiB by default. */
  readonly frameBytesMax?: number;
  /** A peer that was silent for this long is probed; 1 s by default. */
  readonly probeMs?: number;
  /** The stream ends if a probe is not answered in this time; 2 s by default. */
  readonly probeTimeoutMs?: number;
}

/** The accounts of an incoming stream at its port's budgets. */
export interface PortAccounts {
  readonly input: InputAccount;
  readonly output: OutputBudget;
}

export const FRAME_STREAM_DEFAULTS = { frameBytesMax: 64 << 20, probeMs: 1_000, probeTimeoutMs: 2_000 } as const;

const NOTHING = Buffer.alloc(0);
/**
 * The interval of signs of life from the receiver of a large frame: its sender may have passed the frame to the kernel
 * long ago, and waits.
 */
const RECEIVING_MS = 100;
/** The size limit of a hello and of the reason for an end. */
const WORDS_BYTES_MAX = 64 * 1024;
/** `send` returns false when more than this many bytes wait to be sent. */
const PENDING_BYTES_SOFT = 1 << 20;
/** How long the last data of a stream may take to leave. */
const FAREWELL_MS = 1_000;

export class FrameStream {
  readonly #socket: Socket;
  readonly #options: Required<FrameStreamOptions>;
  readonly #parser: FrameParser;
  readonly #onHello: (hello: Hello) => void;
  /** What an incoming stream holds at its port (input-budget.ts). */
  readonly #account: InputAccount | undefined;
  /** What waits because the peer does not read (output-budget.ts). */
  readonly #unread: OutputAccount | undefined;
  #handlers: FrameHandlers;
  #timer: Timer | undefined;
  /** Ends the regular looks (look-rounds.ts); undefined while it waits for an answer. */
  #leaveRound: (() => void) | undefined;
  #greeted = false;
  #over = false;
  /** Whether something arrived since the last look (FS3), and whether something was sent. */
  #heard = true;
  #said = false;
  #probed = false;
  /** When it last sent a sign of life for an incoming frame. */
  #saidReceivingMs = 0;
  /** Bytes that the sender holds back until there is room. */
  #heldBackBytes = 0;

  constructor(socket: Socket, options: FrameStreamOptions, handlers: GreetedHandlers, accounts?: PortAccounts) {
    this.#socket = socket;
    this.#account = accounts?.input;
    this.#unread = accounts?.output.open(socket.remoteAddress, {
      pendingBytes: () => this.#unreadBytes,
      close: () => socket.destroy(),
    });
    this.#options = { ...FRAME_STREAM_DEFAULTS, ...options };
    this.#onHello = (hello) => handlers.onHello(hello);
    this.#handlers = handlers;
    this.#parser = new FrameParser(WORDS_BYTES_MAX, (kind, payload) => this.#frame(kind, payload));
    this.#joinRound();
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => loopSection('frame', () => this.#arrived(chunk)));
    socket.on('drain', () => {
      this.#unread?.holds(this.#unreadBytes);
      if (!this.#over) this.#handlers.onDrain();
    });
    socket.on('end', () => this.#ended({ message: 'the peer ended the connection' }));
    socket.on('error', (error) => {
      this.#ended({
        message: connectionErrorText(error),
        ...(refusesConnections(error) && { connectionRefused: true }),
      });
    });
    socket.on('close', () => {
      this.#ended({ message: 'the connection was closed' });
      this.#stopLooking();
      this.#unread?.end();
    });
  }

  /** Bytes that were sent and not taken by the socket. */
  get pendingBytes(): number {
    return this.#socket.writableLength;
  }

  /** The address of the other end. */
  get peerAddress(): string {
    return `${this.#socket.remoteAddress}:${this.#socket.remotePort}`;
  }

  /** The names in the verified certificate of the other end; undefined if it showed none. */
  get peerCertificate(): CertificateNames | undefined {
    return peerCertificateOf(this.#socket);
  }

  /** The same without the port. */
  get peerHost(): string {
    return this.#socket.remoteAddress ?? '';
  }

  /** The name of the other end's certificate, if it was verified. */
  get verifiedName(): string | undefined {
    return verifiedName(this.#socket);
  }

  /** Sets the handlers for what comes next: the hello may decide them. */
  handle(handlers: FrameHandlers): void {
    this.#handlers = handlers;
  }

  /** Sets the largest accepted frame from now on; small before a hello, `frameBytesMax` after it. */
  takeFramesUpTo(bytes: number): void {
    this.#parser.payloadBytesMax = bytes;
  }

  /** The peer is a node of the cluster: it no longer shares the port's budget with strangers. */
  trust(): void {
    this.#account?.end();
    this.#unread?.end();
  }

  /** This many bytes wait at the sender until the stream has room: they count for the port's budget. */
  holdsBack(bytes: number): void {
    this.#heldBackBytes = bytes;
    this.#unread?.holds(this.#unreadBytes);
  }

  sayHello(hello: Hello): void {
    this.#write('data', Buffer.from(JSON.stringify(hello)));
  }

  /**
   * Returns false when much data waits for the socket: the frame is sent, but the caller should hold further ones until
   * `onDrain`.
   */
  send(frame: Uint8Array): boolean {
    this.#write('data', frame);
    return this.#socket.writableLength < PENDING_BYTES_SOFT;
  }

  /** Ends the stream when everything sent has left, with a reason (FS2) or without. */
  end(reason?: StreamEnd): void {
    if (this.#over) return;
    if (reason !== undefined) {
      const { code, message } = reason;
      this.#write('end', Buffer.from(JSON.stringify({ code, message })));
    }
    this.#over = true;
    this.#stopLooking();
    this.#timer = this.#options.clock.setTimer(FAREWELL_MS, () => this.#socket.destroy());
    this.#socket.end();
    this.#socket.resume();
  }

  /** Ends the stream at once. */
  destroy(): void {
    this.#over = true;
    this.#stopLooking();
    this.#socket.destroy();
  }

  get #unreadBytes(): number {
    return this.#socket.writableLength + this.#heldBackBytes;
  }

  #write(kind: FrameKind, payload: Uint8Array): void {
    if (this.#over) return;
    this.#said = true;
    this.#socket.cork();
    for (const bytes of frameBytes(kind, payload)) this.#socket.write(bytes);
    this.#socket.uncork();
    this.#unread?.holds(this.#unreadBytes);
  }

  #arrived(chunk: Buffer): void {
    this.#heard = true;
    if (this.#over) return;
    if (this.#greeted) this.#handlers.onHeard?.();
    try {
      this.#parser.push(chunk);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      return this.#refuse(
        this.#greeted ? error.message : `the peer does not speak this protocol (is it an HTTP port?): ${error.message}`,
      );
    }
    this.#account?.unfinished(this.#parser.unfinishedBytes, this.#parser.frames);
    if (this.#greeted && this.#parser.unfinishedBytes > 0) this.#sayReceiving();
  }

  #sayReceiving(): void {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs - this.#saidReceivingMs < RECEIVING_MS) return;
    this.#saidReceivingMs = nowMs;
    this.#answer();
  }

  #frame(kind: FrameKind, payload: Buffer): void {
    if (this.#over) return;
    if (kind === 'probe') return this.#answer();
    if (kind === 'answer') return;
    if (kind === 'end') return this.#ended(parseEnd(payload));
    if (this.#greeted) {
      this.#account?.called();
      return this.#handlers.onFrame(payload);
    }
    const hello = parseHello(payload);
    if (hello === undefined) return this.#refuse('the stream does not start with a hello frame'); // FS1
    this.#greeted = true;
    this.#parser.payloadBytesMax = this.#options.frameBytesMax;
    this.#onHello(hello);
    this.#account?.greeted(); // unless the hello was a node's
  }

  /**
   * Data that waits for the peer also serves as a sign of life (FS3): a peer that probes and does not read gets no more
   * (FS4).
   */
  #answer(): void {
    if (this.#socket.writableLength === 0) this.#write('answer', NOTHING);
  }

  #refuse(message: string): void {
    this.end({ code: 'INVALID_ARGUMENT', message });
    this.#handlers.onEnd({ message });
  }

  #ended(end: StreamEnd): void {
    if (this.#over) return;
    this.destroy();
    this.#handlers.onEnd(end);
  }

  /** FS3. Input that is pending is read before a silent peer is given up. */
  #look(): void {
    if (this.#heard || !this.#probed) return this.#probe();
    this.#options.clock.setImmediate(() => {
      if (this.#over) return;
      if (this.#heard) this.#probe();
      else this.#ended({ message: 'the peer does not answer' });
    });
  }

  #probe(): void {
    const { clock, probeTimeoutMs } = this.#options;
    this.#probed = !this.#heard;
    if (this.#probed) this.#write('probe', NOTHING);
    else if (!this.#said) this.#write('answer', NOTHING);
    this.#heard = false;
    this.#said = false;
    if (!this.#probed) return this.#joinRound();
    this.#stopLooking();
    this.#timer = clock.setTimer(probeTimeoutMs, () => this.#look());
  }

  #joinRound(): void {
    const { clock, probeMs } = this.#options;
    this.#leaveRound ??= joinRound(clock, probeMs, () => this.#look());
  }

  #stopLooking(): void {
    this.#timer?.cancel();
    this.#leaveRound?.();
    this.#leaveRound = undefined;
  }
}

function parseHello(bytes: Buffer): Hello | undefined {
  const words = parseWords(bytes);
  return words !== undefined && Object.values(words).every((value) => typeof value === 'string')
    ? (words as Hello)
    : undefined;
}

/** A name may have several addresses: then the error has one error for each of them. */
function refusesConnections(error: Error): boolean {
  const errors: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
  return errors.every((each) => each instanceof Error && 'code' in each && each.code === 'ECONNREFUSED');
}

function parseEnd(bytes: Buffer): StreamEnd {
  const { code, message } = parseWords(bytes) ?? {};
  const text = typeof message === 'string' ? message : 'the peer ended the stream';
  return typeof code === 'string' && isErrorCode(code) ? { code, message: text } : { message: text };
}

function parseWords(bytes: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const words: unknown = parseBoundedJson(bytes.toString());
    return typeof words === 'object' && words !== null ? { ...words } : undefined;
  } catch {
    return undefined;
  }
}
