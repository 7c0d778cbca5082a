import type { Principal } from '@remora/auth';
import { SeededRandom, silentLogger } from '@remora/base';
import { type ApiAnswer, type Backend, HttpApi, WaitSlots } from '@remora/gateway';
import { adminApi, type PlayedMasters, type PlayedNodes } from '../support/admin-api.ts';
import { PlayedAuth } from '../support/auth-admin.ts';
import { World } from '../support/sdk-world.ts';
import { undescribed, undescribedEvent, undescribedLine } from './described.ts';

export interface HttpCall {
  readonly method?: string;
  readonly target: string;
  readonly body?: unknown;
  /** The lines of a body of JSON lines. */
  readonly lines?: readonly unknown[];
  readonly lastEventId?: string;
  readonly principal?: Principal;
  /** The caller has come by TLS. */
  readonly isSecure?: boolean;
  /** The caller. It hangs up when this aborts. */
  readonly signal?: AbortSignal;
}

/** Two nodes with the JSON interface on one cluster. Each answer is checked against the document. */
export class HttpBed {
  readonly world = new World();
  readonly nodes: readonly HttpApi[];
  /** Users and roles. Only the calls about them ask it: nobody needs a permission for the others. */
  readonly auth: PlayedAuth;

  /** `behind`: the layer between the nodes and the cluster. `masters`, `others`: what answers administration. */
  constructor(
    behind: (world: World) => Backend = ({ backend }) => backend,
    masters?: PlayedMasters,
    others?: PlayedNodes,
  ) {
    const { clock } = this.world;
    const backend = behind(this.world);
    const waits = new WaitSlots(1_000, () => {});
    const admin = adminApi(backend, clock, masters, others);
    this.auth = new PlayedAuth(clock);
    const auth = this.auth.admin;
    this.nodes = [1, 2].map(
      (seed) =>
        new HttpApi({
          ...{ backend, admin, auth, clock, logger: silentLogger, waits },
          random: new SeededRandom(seed),
        }),
    );
  }

  /** Sends a request to node 0 or 1. `until` waits for the answer. */
  async ask(call: HttpCall, node = 0): Promise<ApiAnswer> {
    const { method = 'POST', target, body, lines, lastEventId, principal, isSecure = false, signal } = call;
    const api = this.nodes[node];
    if (api === undefined) throw new Error(`there is no node ${node}`);
    const request = { method, target, ...(body === undefined ? {} : { body }) };
    const answer = await api.handle({
      ...request,
      ...{ lines, lastEventId },
      ...{ principal, isSecure, address: '127.0.0.1' },
      signal: signal ?? new AbortController().signal,
    });
    const problem = undescribed({ ...request, ...(lines === undefined ? {} : { lines }) }, answer);
    if (problem !== undefined) throw new Error(problem);
    return answer;
  }

  /** The body of an answer with 200. */
  async done<Body = Grant>(call: HttpCall, node = 0): Promise<Body> {
    const answer = await this.world.until(this.ask(call, node));
    if (answer.status !== 200) throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`);
    return answer.body as Body;
  }

  /** Status and code of a refusal. */
  async refused(call: HttpCall, node = 0): Promise<string> {
    const { status, body } = await this.world.until(this.ask(call, node));
    return `${status} ${(body as { readonly error?: { readonly code: string } }).error?.code ?? 'ok'}`;
  }

  acquire(name: string, body: Readonly<Record<string, unknown>> = {}): Promise<Grant> {
    return this.done({ target: `${LOCKS}/${name}/acquire`, body });
  }

  /** Listens to a stream of events, and checks each event against the document. */
  async listen(target: string, lastEventId?: string): Promise<Listening> {
    const asked = { method: 'GET', target, ...(lastEventId === undefined ? {} : { lastEventId }) };
    const { events: open } = await this.world.until(this.ask(asked));
    if (open === undefined) throw new Error('no events are told');
    const events: Heard[] = [];
    const client = { isFull: false };
    const source = open({
      write: (type, data, id) => {
        const problem = undescribedEvent(target, type, data);
        if (problem !== undefined) throw new Error(problem);
        events.push({ type, data, ...(id === undefined ? {} : { id }) });
        return client.isFull ? Number.POSITIVE_INFINITY : 0;
      },
      end: (type, data) => void events.push({ type, data }),
    });
    const listening: Listening = {
      events,
      get full() {
        return client.isFull;
      },
      set full(isFull) {
        client.isFull = isFull;
      },
      happened: () =>
        events
          .filter(({ type }) => type === 'events')
          .flatMap(({ data }) => (data as { readonly events: readonly { readonly type: string }[] }).events)
          .map(({ type }) => type),
      drain: () => source.onDrain(),
      close: () => source.onClose(),
    };
    await this.world.run(100);
    return listening;
  }

  /** Reads a stream of JSON lines to its end; it is never more than a line behind. */
  async lines(target: string): Promise<readonly unknown[]> {
    const { lines: open } = await this.world.until(this.ask({ method: 'GET', target }));
    if (open === undefined) throw new Error('no lines are sent');
    const lines: unknown[] = [];
    const done = new Promise<void>((resolve) => {
      const source = open({
        write: (line) => {
          const problem = undescribedLine(target, line);
          if (problem !== undefined) throw new Error(problem);
          lines.push(line);
          this.world.clock.setImmediate(() => source.onDrain());
          return false;
        },
        unread: () => 0,
        end: (error) => {
          if (error !== undefined) lines.push(error.line);
          this.world.clock.setImmediate(() => source.onClose());
          resolve();
        },
      });
    });
    await this.world.until(done);
    return lines;
  }

  /** `held/waiting`, according to the cluster. */
  async users(name: string): Promise<string> {
    const { holderCount, waiterCount } = await this.done<Shown>({ method: 'GET', target: `${LOCKS}/${name}` });
    return `${holderCount}/${waiterCount}`;
  }

  async settled(): Promise<void> {
    await this.world.until(Promise.all(this.nodes.map((node) => node.cleanedUp())));
  }
}

export const LOCKS = '/v1/locks/default';
/** An id as a client chooses it that wants to repeat its call. */
export const GUID = '0b6f1f0e-8d1b-4c59-9f0a-3d1b2c4e5f60';

export function lockPath(name: string, action: string): string {
  return `${LOCKS}/${name}/${action}`;
}

export interface Grant {
  readonly session: string;
  readonly token: string;
  readonly version: number;
  readonly ttlMs: number;
  readonly validMs: number;
  readonly lockTimeMs: number;
  readonly keptData?: unknown;
}

interface Heard {
  readonly type: string;
  readonly data: unknown;
  readonly id?: number;
}

export interface Listening {
  /** More is written than it accepts. */
  full: boolean;
  readonly events: readonly Heard[];
  /** The types of the events, in order. */
  happened(): readonly string[];
  drain(): void;
  close(): void;
}

export interface Shown {
  readonly name: unknown;
  readonly kind: string;
  readonly holders: readonly { readonly ownerId: string; readonly mode: string; readonly data: unknown }[];
  readonly holderCount: number;
  readonly waiterCount: number;
  readonly permits?: number;
  readonly capacity?: number;
}
