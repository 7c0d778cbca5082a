import { SeededRandom, ServiceError, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import {
  type ClientConnection,
  createRpcRegistry,
  type PipeLogIn,
  pipeGateways,
  pipeLogIn,
  serveLink,
} from '@remora/protocol';
import { createMemoryLink } from '@remora/protocol/testing';
import { expect, test } from 'vitest';
import type { ClientPorts } from '../ports.ts';
import type { Credentials } from './credentials.ts';
import type { KnownToken } from './log-ins.ts';
import { Requester } from './requester.ts';
import { retryPolicy } from './retry.ts';

const LIFE_MS = 300_000;
const HASH_MS = 80;
const ADA: Credentials = { with: 'password', user: 'ada', password: 'secret' };

type GatewayState = 'up' | 'busy' | 'cutOff';

/** A cluster whose gateways answer `gateways` to users. Its rules are those of packages/auth and pipe-log-in.ts. */
class UsersBed {
  readonly clock = new ManualClock();
  /** `undefined`: authentication is off. */
  password: string | undefined = 'secret';
  readonly states: Record<string, GatewayState> = { 'a:1': 'up', 'b:1': 'up' };
  readonly logIns: string[] = [];
  readonly servedAt: string[] = [];
  hashing = 0;
  hashingMost = 0;
  readonly #tokens = new Map<string, { readonly password: string; readonly endsMs: number }>();
  readonly #links: { readonly address: string; readonly sever: () => void }[] = [];

  requester(
    credentials: Credentials | undefined,
    endpoints: readonly string[] = ['a:1'],
    useToken: (token: KnownToken) => void = () => {},
  ): Requester {
    const ports = {
      clock: this.clock,
      random: new SeededRandom(1),
      logger: silentLogger,
      connectLink: ({ address }: { readonly address: string }) => this.#connect(address),
      liveness: { hold() {}, release() {} },
      backgroundRenewer: { useToken },
    };
    const options = { endpoints, requestBytesMax: 1_000, retry: retryPolicy(), credentials };
    return new Requester(ports as unknown as ClientPorts, options);
  }

  newToken(lifeMs = LIFE_MS): string {
    const token = `token-${this.#tokens.size + 1}`;
    this.#tokens.set(token, { password: this.password ?? '', endsMs: this.clock.monotonicMs() + lifeMs });
    return token;
  }

  /** Sends a request; returns the codes of its end, none before it ends. */
  ask(requester: Requester, timeoutMs = 10_000): string[] {
    const ends: string[] = [];
    requester.request(pipeGateways, undefined, { timeoutMs }).then(
      () => ends.push('ok'),
      (error: ServiceError) => ends.push(error.code),
    );
    return ends;
  }

  /** Lets time pass in steps, between which promises settle. */
  async pass(ms: number, stepMs = 20): Promise<void> {
    for (let passed = 0; passed < ms; passed += stepMs) {
      this.clock.advance(stepMs);
      for (let i = 0; i < 10; i++) await Promise.resolve();
    }
  }

  sever(address: string): void {
    for (const link of this.#links) if (link.address === address) link.sever();
  }

  #connect(address: string) {
    const pair = createMemoryLink(this.clock);
    const connection: ClientConnection = { certificateName: undefined, address: '127.0.0.1', token: undefined };
    const registry = createRpcRegistry();
    registry.handle(pipeLogIn, (request, _context, done) => this.#logIn(address, connection, request, done));
    registry.handle(pipeGateways, (_request, _context, done) => {
      const problem = this.#problemOf(connection.token);
      if (problem !== undefined) return done(new ServiceError('UNAUTHENTICATED', problem), undefined);
      this.servedAt.push(address);
      done(undefined, { cluster: '', addresses: [] });
    });
    serveLink({
      link: pair.server,
      registry,
      clock: this.clock,
      caller: { kind: 'client', connection },
    });
    this.#links.push({ address, sever: () => pair.sever() });
    return pair.client;
  }

  #problemOf(token: string | undefined): string | undefined {
    if (this.password === undefined) return undefined;
    if (token === undefined) return 'nobody is logged in';
    const known = this.#tokens.get(token);
    if (known === undefined || known.password !== this.password) return 'the token is not valid';
    return known.endsMs <= this.clock.monotonicMs() ? 'the token has ended' : undefined;
  }

  #logIn(
    address: string,
    connection: ClientConnection,
    request: PipeLogIn,
    done: (error: ServiceError | undefined, reply?: { token: string; lifeMs: number }) => void,
  ): void {
    this.logIns.push(`${request.with} at ${address}`);
    if (this.password === undefined) return done(undefined, { token: '', lifeMs: LIFE_MS });
    if (this.states[address] === 'busy') return done(new ServiceError('RESOURCE_EXHAUSTED', 'too many log-ins'));
    if (this.states[address] === 'cutOff') return done(new ServiceError('UNAVAILABLE', 'no masters'));
    if (request.with === 'token') {
      const problem = this.#problemOf(request.token);
      if (problem !== undefined) return done(new ServiceError('UNAUTHENTICATED', problem));
      connection.token = request.token;
      return done(undefined, { token: request.token, lifeMs: LIFE_MS });
    }
    this.hashingMost = Math.max(this.hashingMost, ++this.hashing);
    const isRight = request.password === this.password;
    this.clock.setTimer(HASH_MS, () => {
      this.hashing--;
      if (!isRight) return done(new ServiceError('UNAUTHENTICATED', 'the user or the password is wrong'));
      connection.token = this.newToken();
      done(undefined, { token: connection.token, lifeMs: LIFE_MS });
    });
  }
}

test('a connection carries no request before it is logged in, and many requests need one log-in (LI2)', async () => {
  const bed = new UsersBed();
  const requester = bed.requester(ADA);
  const all = [bed.ask(requester), bed.ask(requester), bed.ask(requester)];
  await bed.pass(60);
  expect(all.flat()).toEqual([]);
  await bed.pass(200);
  expect(all.flat()).toEqual(['ok', 'ok', 'ok']);
  expect(bed.logIns).toEqual(['password at a:1']);
});

test('without credentials, what a gateway refuses as UNAUTHENTICATED ends at once', async () => {
  const bed = new UsersBed();
  const ends = bed.ask(bed.requester(undefined));
  await bed.pass(200);
  expect(ends).toEqual(['UNAUTHENTICATED']);
});

test('two connections share one log-in by password (LI1), and a further one uses the token (LI2)', async () => {
  const bed = new UsersBed();
  const requester = bed.requester(ADA, ['a:1', 'b:1']);
  const other = requester.gateways.channel === requester.gateways.other('a:1') ? 'b:1' : 'a:1';
  const ends: string[] = [];
  for (const address of ['a:1', 'b:1']) {
    const channel = requester.gateways.other(address) ?? requester.gateways.channel;
    channel.call(pipeGateways, undefined, { timeoutMs: 5_000 }, (error) => ends.push(error?.code ?? 'ok'));
  }
  await bed.pass(400);
  expect(ends).toEqual(['ok', 'ok']);
  expect(bed.hashingMost).toBe(1);
  expect(bed.logIns.map((logIn) => logIn.split(' ')[0])).toEqual(['password', 'token']);
  bed.sever('a:1');
  bed.sever('b:1');
  await bed.pass(200);
  const again = bed.ask(requester);
  await bed.pass(200);
  expect(again).toEqual(['ok']);
  expect(bed.logIns.filter((logIn) => logIn.startsWith('password'))).toHaveLength(1);
  expect(other).toBeDefined();
});

test('a log-in is renewed before its token ends, while requests go on (LI3)', async () => {
  const bed = new UsersBed();
  const requester = bed.requester(ADA);
  const codes: string[][] = [];
  for (let i = 0; i < 60; i++) {
    codes.push(bed.ask(requester));
    await bed.pass(20_000, 500);
  }
  expect(new Set(codes.flat())).toEqual(new Set(['ok']));
  // 20 minutes: at most one log-in for each 60 % of five minutes.
  expect(bed.logIns.length).toBeGreaterThanOrEqual(5);
  expect(bed.logIns.length).toBeLessThanOrEqual(7);
  requester.close();
  await bed.pass(20_000, 500);
  expect(bed.clock.pendingTimers).toBe(0);
});

test('a renewal that fails is repeated, and nothing is refused meanwhile (LI3)', async () => {
  const bed = new UsersBed();
  const requester = bed.requester(ADA);
  bed.ask(requester);
  await bed.pass(1_000);
  bed.states['a:1'] = 'busy';
  await bed.pass(0.85 * LIFE_MS, 500);
  expect(bed.logIns.length).toBeGreaterThan(2);
  expect(bed.logIns.length).toBeLessThan(15);
  bed.states['a:1'] = 'up';
  await bed.pass(LIFE_MS / 2, 500);
  const ends = bed.ask(requester);
  await bed.pass(200);
  expect(ends).toEqual(['ok']);
});

test('a wrong password ends what waits, and costs the cluster few log-ins (LI5)', async () => {
  const bed = new UsersBed();
  const requester = bed.requester({ ...ADA, password: 'wrong' }, ['a:1', 'b:1']);
  const first = [bed.ask(requester), bed.ask(requester)];
  await bed.pass(300);
  expect(first.flat()).toEqual(['UNAUTHENTICATED', 'UNAUTHENTICATED']);
  expect(bed.logIns).toHaveLength(1);
  const codes: string[][] = [];
  for (let i = 0; i < 600; i++) {
    codes.push(bed.ask(requester));
    await bed.pass(100);
  }
  await bed.pass(1_000);
  expect(new Set(codes.flat())).toEqual(new Set(['UNAUTHENTICATED']));
  expect(codes.flat()).toHaveLength(600);
  expect(bed.logIns.length).toBeGreaterThan(3);
  expect(bed.logIns.length).toBeLessThan(9);
  bed.password = 'wrong';
  await bed.pass(31_000, 500);
  const ends = bed.ask(requester);
  await bed.pass(1_000);
  expect(ends).toEqual(['ok']);
});

test.each(['busy', 'cutOff'] as const)('what a %s gateway cannot verify, another one does (LI6)', async (state) => {
  const bed = new UsersBed();
  const requester = bed.requester(ADA, ['a:1', 'b:1']);
  for (const address of ['a:1', 'b:1'])
    if (requester.gateways.other(address) === undefined) bed.states[address] = state;
  const ends = bed.ask(requester);
  await bed.pass(1_000);
  expect(ends).toEqual(['ok']);
  const both = bed.requester(ADA, ['a:1', 'b:1']);
  bed.states['a:1'] = state;
  bed.states['b:1'] = state;
  bed.logIns.length = 0;
  const late = bed.ask(both, 9_000);
  await bed.pass(10_000);
  expect(late).toEqual(['DEADLINE_EXCEEDED']);
  expect(bed.logIns.length).toBeLessThan(40);
});

test('a password that changed while the client was connected is refused from then on (LI4, LI5)', async () => {
  const bed = new UsersBed();
  const requester = bed.requester(ADA);
  const before = bed.ask(requester);
  await bed.pass(200);
  bed.password = 'changed';
  const after = bed.ask(requester);
  await bed.pass(400);
  expect([before, after]).toEqual([['ok'], ['UNAUTHENTICATED']]);
  expect(bed.logIns).toEqual(['password at a:1', 'password at a:1']);
});

test('a client logs in when authentication is switched on while it is connected (LI7)', async () => {
  const bed = new UsersBed();
  bed.password = undefined;
  const requester = bed.requester(ADA);
  const before = bed.ask(requester);
  await bed.pass(200);
  bed.password = 'secret';
  const after = [bed.ask(requester), bed.ask(requester)];
  await bed.pass(400);
  expect([before, ...after]).toEqual([['ok'], ['ok'], ['ok']]);
  expect(bed.logIns).toEqual(['password at a:1', 'password at a:1']);
});

test('a token that is given as text is used until it is refused', async () => {
  const bed = new UsersBed();
  const requester = bed.requester({ with: 'token', token: bed.newToken(60_000) });
  const before = bed.ask(requester);
  await bed.pass(200);
  await bed.pass(60_000, 500);
  const after = bed.ask(requester);
  await bed.pass(400);
  expect([before, after]).toEqual([['ok'], ['UNAUTHENTICATED']]);
});

test('a function for tokens is called at the beginning, before a token ends, and when one is refused', async () => {
  const bed = new UsersBed();
  let calls = 0;
  const token = async (): Promise<string> => {
    calls++;
    return bed.newToken();
  };
  const requester = bed.requester({ with: 'token', token });
  const before = bed.ask(requester);
  await bed.pass(200);
  expect([before, calls]).toEqual([['ok'], 1]);
  await bed.pass(0.85 * LIFE_MS, 500);
  expect(calls).toBe(2);
  bed.password = 'changed';
  const after = bed.ask(requester);
  await bed.pass(400);
  expect([after, calls]).toEqual([['ok'], 3]);
});

test('a function for tokens that fails or hangs ends requests by their time, without its token', async () => {
  const bed = new UsersBed();
  const failing = bed.requester({ with: 'token', token: () => Promise.reject(new Error('no secrets today')) });
  const hanging = bed.requester({ with: 'token', token: () => new Promise<string>(() => {}) });
  const wrong = bed.requester({ with: 'token', token: () => 7 as unknown as string });
  const all = [bed.ask(failing, 3_000), bed.ask(hanging, 3_000), bed.ask(wrong, 3_000)];
  await bed.pass(4_000);
  expect(all.map((ends) => ends.length)).toEqual([1, 1, 1]);
  expect(all.flat()).not.toContain('ok');
  expect(bed.logIns).toEqual([]);
});

test('a background renewer without credentials of its own uses the tokens of its client', async () => {
  const bed = new UsersBed();
  const tokens: KnownToken[] = [];
  const renewer = bed.requester({ with: 'tokensOfClient' });
  const client = bed.requester(ADA, ['a:1'], (token) => tokens.push(token));
  const early = bed.ask(renewer, 1_000);
  bed.ask(client);
  await bed.pass(1_500);
  expect([early, tokens.length]).toEqual([['DEADLINE_EXCEEDED'], 1]);
  for (const token of tokens) renewer.logIns?.learn(token);
  const late = bed.ask(renewer);
  await bed.pass(3_000);
  expect(late).toEqual(['ok']);
  expect(bed.logIns.filter((logIn) => logIn.startsWith('password'))).toHaveLength(1);
});

test('a valid token still serves new connections after its renewal was refused', async () => {
  const bed = new UsersBed();
  const tokens = [bed.newToken()];
  const requester = bed.requester({ with: 'token', token: () => tokens.shift() ?? 'none of the cluster' });
  const before = bed.ask(requester);
  await bed.pass(200);
  await bed.pass(0.85 * LIFE_MS, 500);
  bed.sever('a:1');
  await bed.pass(100);
  const after = bed.ask(requester);
  await bed.pass(200);
  expect([before, after]).toEqual([['ok'], ['ok']]);
});
