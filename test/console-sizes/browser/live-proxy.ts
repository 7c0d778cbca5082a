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
}

/** How often the gateway sends each topic, if it changes all the time (`live-sources.ts`). */
export type Cadence = ReadonlyMap<string, number>;

const LIVE = '/v1/cluster/live';
const EVERY_MS = 1_000;
const PER_RANGE_MS = 1;
const PER_NODE_MS = 10;

export function cadenceOf({ ranges, nodes }: { readonly ranges: number; readonly nodes: number }): Cadence {
  const byRanges = EVERY_MS + ranges * PER_RANGE_MS;
  return new Map([
    ['overview', byRanges],
    ['ranges', byRanges],
    ['now', EVERY_MS + nodes * PER_NODE_MS],
    ['operators', EVERY_MS],
    ['schedulers', EVERY_MS],
  ]);
}

/** Takes down what the gateway sends in this time. */
export async function record(base: string, topics: readonly string[], ms: number): Promise<readonly LiveEvent[]> {
  const events: LiveEvent[] = [];
  const caller = new AbortController();
  const timer = setTimeout(() => caller.abort(), ms);
  try {
    const answer = await fetch(`${base}${LIVE}?topics=${topics.join(',')}`, { signal: caller.signal });
    let rest = '';
    for await (const chunk of answer.body ?? []) {
      const parts = (rest + Buffer.from(chunk).toString()).split('\n\n');
      rest = parts.pop() ?? '';
      for (const part of parts) {
        const event = /^event: (.*)$/m.exec(part)?.[1];
        const data = /^data: (.*)$/m.exec(part)?.[1];
        if (event !== undefined && data !== undefined) events.push({ event, data });
      }
    }
  } catch (error) {
    if (!caller.signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
  }
  return events;
}

export class LiveProxy {
  readonly #server: Server;
  readonly #base: URL;
  readonly #events: readonly LiveEvent[];
  readonly #cadence: Cadence;
  readonly #speed: number;
  /** Events sent so far. */
  sent = 0;

  constructor(base: string, events: readonly LiveEvent[], cadence: Cadence, speed: number) {
    this.#base = new URL(base);
    this.#events = events;
    this.#cadence = cadence;
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
    const topics = new URL(request.url ?? '', this.#base).searchParams.get('topics')?.split(',') ?? [];
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    const ends = topics.map((topic) => this.#playTopic(topic, response));
    response.on('close', () => {
      for (const end of ends) end();
    });
  }

  /** Like the gateway, it sends nothing while the page is behind. */
  #playTopic(topic: string, response: ServerResponse): () => void {
    const events = this.#events.filter(({ event }) => event === topic);
    let next = 0;
    const send = (): void => {
      const event = events[next % Math.max(1, events.length)];
      if (event === undefined || response.writableNeedDrain) return;
      next++;
      this.sent++;
      response.write(`event: ${topic}\ndata: ${event.data}\n\n`);
    };
    send();
    const timer = setInterval(send, (this.#cadence.get(topic) ?? EVERY_MS) / this.#speed);
    return () => clearInterval(timer);
  }
}
