/**
 * An hour of live data in minutes: a proxy before the real gateway. It has recorded the live events that the gateway
 * really sent, and plays them faster, round and round; all other requests go to the gateway.
 */
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

export interface LiveEvent {
  readonly event: string;
  readonly data: string;
  /** Since the recording began. */
  readonly atMs: number;
}

const LIVE = '/v1/cluster/live';
const TOPICS = ['overview', 'now', 'operators', 'ranges', 'schedulers'] as const;

/** Takes down what the gateway sends in this time. */
export async function record(base: string, ms: number): Promise<readonly LiveEvent[]> {
  const beganMs = performance.now();
  const events: LiveEvent[] = [];
  const caller = new AbortController();
  const timer = setTimeout(() => caller.abort(), ms);
  try {
    const answer = await fetch(`${base}${LIVE}?topics=${TOPICS.join(',')}`, { signal: caller.signal });
    let rest = '';
    for await (const chunk of answer.body ?? []) {
      const parts = (rest + Buffer.from(chunk).toString()).split('\n\n');
      rest = parts.pop() ?? '';
      for (const part of parts) {
        const event = /^event: (.*)$/m.exec(part)?.[1];
        const data = /^data: (.*)$/m.exec(part)?.[1];
        if (event !== undefined && data !== undefined) events.push({ event, data, atMs: performance.now() - beganMs });
      }
    }
  } catch (error) {
    if (!caller.signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
  }
  return events;
}

/** How many events of each topic an hour has, at the pace of the recording. */
export function perHour(events: readonly LiveEvent[], recordedMs: number): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { event } of events) counts.set(event, (counts.get(event) ?? 0) + 1);
  return new Map([...counts].map(([event, count]) => [event, Math.round((count * 3_600_000) / recordedMs)]));
}

export class LiveProxy {
  readonly #server: Server;
  readonly #base: URL;
  readonly #events: readonly LiveEvent[];
  readonly #recordedMs: number;
  readonly #speed: number;
  /** Events sent so far. */
  sent = 0;

  constructor(base: string, events: readonly LiveEvent[], recordedMs: number, speed: number) {
    this.#base = new URL(base);
    this.#events = events;
    this.#recordedMs = recordedMs;
    this.#speed = speed;
    this.#server = createServer((request, response) => this.#serve(request, response));
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    if (request.url?.startsWith(LIVE) === true) return this.#play(request, response);
    const { hostname, port } = this.#base;
    const { method, url: path, headers } = request;
    const inner = httpRequest({ hostname, port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    inner.on('error', () => response.destroy());
    request.pipe(inner);
    response.on('close', () => inner.destroy());
  }

  #play(request: IncomingMessage, response: ServerResponse): void {
    const topics = new Set(new URL(request.url ?? '', this.#base).searchParams.get('topics')?.split(','));
    const events = this.#events.filter(({ event }) => topics.has(event));
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    let next = 0;
    let timer: NodeJS.Timeout | undefined;
    const send = (): void => {
      const event = events[next % Math.max(1, events.length)];
      if (event === undefined) return;
      const hasRoom = response.write(`event: ${event.event}\ndata: ${event.data}\n\n`);
      this.sent++;
      const following = events[++next % events.length];
      const gapMs = following === undefined ? 0 : following.atMs - event.atMs;
      // From the last event to the first one of the next round.
      const waitMs = gapMs >= 0 ? gapMs : gapMs + this.#recordedMs;
      const go = (): void => {
        timer = setTimeout(send, waitMs / this.#speed);
      };
      if (hasRoom) go();
      else response.once('drain', go);
    };
    send();
    response.on('close', () => clearTimeout(timer));
  }
}
