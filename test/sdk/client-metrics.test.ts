import type { ClientEventName, RemoraClient } from 'remora';
import { CLIENT_METRICS, type ClientMetrics, openTelemetryMetrics, prometheusMetrics } from 'remora/metrics';
import { beforeEach, describe, expect, test } from 'vitest';
import { codeOf, GATEWAYS, World } from '../support/sdk-world.ts';

let world: World;
let seen: string[];
let metrics: ClientMetrics;
beforeEach(() => {
  world = new World();
  seen = [];
  const labelled = (name: string, labels: object): string => `${name} ${Object.values(labels).join(' ')}`;
  metrics = {
    count: (name, labels) => seen.push(labelled(name, labels)),
    observe: (name, seconds, labels) => seen.push(`${labelled(name, labels)} ${seconds < 0 ? 'negative' : 'time'}`),
  };
});

function has(text: string): boolean {
  return seen.includes(text);
}

describe('the numbers of a client', () => {
  test('count requests by kind and by code, and measure them', async () => {
    const client = await world.client({ metrics });
    await world.until(client.kv.put('k', 'v'));
    await world.until(codeOf(client.kv.get('k', { revision: 99 })));
    expect([
      has('remora_client_requests_total kv OK'),
      has('remora_client_request_seconds kv time'),
      has('remora_client_requests_total range FUTURE_REVISION'),
    ]).toEqual([true, true, true]);
    expect(seen.filter((one) => one.includes('retries'))).toEqual([]);
  });

  test('count what was sent again', async () => {
    const client = await world.client({ metrics });
    await world.until(client.kv.put('k', 'v'));
    world.down.add('a:1');
    world.down.add('b:1');
    world.sever();
    const put = client.kv.put('k', 'w');
    await world.run(500);
    world.down.clear();
    await world.until(put);
    expect(has('remora_client_request_retries_total kv')).toBe(true);
  });

  test('measure waits for locks and holds, but no wait as a request', async () => {
    const client = await world.client({ metrics });
    const held = await world.until(client.lock('l').acquire());
    await world.until(codeOf(client.rwLock('l').read({ wait: '1s' })));
    await world.until(held.release());
    expect([
      has('remora_client_lock_wait_seconds exclusive OK time'),
      has('remora_client_lock_wait_seconds shared LOCK_TIMEOUT time'),
      has('remora_client_lock_hold_seconds exclusive released time'),
    ]).toEqual([true, true, true]);
  });

  test('say that a lock was lost, and how its session fared', async () => {
    const client = await world.client({ metrics, sessionTtl: '2s' });
    await world.until(client.lock('l').acquire());
    for (const address of GATEWAYS) world.freeze(address);
    await world.run(10_000);
    expect([
      has('remora_client_lock_hold_seconds exclusive lost time'),
      has('remora_client_session_events_total suspended'),
      has('remora_client_session_events_total lost'),
    ]).toEqual([true, true, true]);
  });

  test('that cannot be collected harm nothing (CM1)', async () => {
    const broken = (): never => {
      throw new Error('no');
    };
    const client = await world.client({ metrics: { count: broken, observe: broken } });
    await world.until(client.lock('l').run(() => client.kv.put('k', 'v')));
    expect((await world.until(client.kv.get('k')))?.text()).toBe('v');
  });

  test('have no labels but those that are documented (CM2)', async () => {
    const found = new Set<string>();
    const note = (name: string, labels: object): void => void found.add(`${name}: ${Object.keys(labels)}`);
    const collector = { count: note, observe: (name: string, _: number, labels: object) => note(name, labels) };
    const client = await world.client({ metrics: collector, sessionTtl: '2s' });
    await world.until(client.lock('secret').acquire());
    for (const address of GATEWAYS) world.freeze(address);
    await world.run(10_000);
    const documented = Object.entries(CLIENT_METRICS).map(([name, { labels }]) => `${name}: ${labels}`);
    expect([...found].filter((one) => !documented.includes(one))).toEqual([]);
    expect(found.size).toBeGreaterThanOrEqual(5);
  });
});

describe('events of a client', () => {
  async function listened(client: RemoraClient): Promise<string[]> {
    const heard: string[] = [];
    for (const name of ['suspended', 'resumed', 'lost'] satisfies ClientEventName[]) {
      client.on(name, ({ session, reason }) => heard.push(`${name} ${session} ${reason?.code ?? ''}`.trim()));
    }
    return heard;
  }

  test('are `suspended`, and `resumed` when the cluster answers again (CE1)', async () => {
    const client = await world.client({ sessionTtl: '10s' });
    const heard = await listened(client);
    const held = await world.until(client.lock('l').acquire());
    const id = held.handle.lease;
    for (const address of GATEWAYS) world.freeze(address);
    await world.run(7_000);
    expect([heard, held.state]).toEqual([[`suspended ${id}`], 'suspended']);
    for (const address of GATEWAYS) world.thaw(address);
    await world.run(2_000);
    expect([heard, held.state]).toEqual([[`suspended ${id}`, `resumed ${id}`], 'active']);
    await world.until(client.close());
    expect(heard).toHaveLength(2);
  });

  test('end with `lost`, once, with the reason', async () => {
    const client = await world.client({ sessionTtl: '2s' });
    const heard = await listened(client);
    const held = await world.until(client.lock('l').acquire());
    for (const address of GATEWAYS) world.freeze(address);
    await world.run(20_000);
    const id = held.handle.lease;
    expect(heard).toEqual([`suspended ${id}`, `lost ${id} SESSION_EXPIRED`]);
  });

  test('reach every listener that was not removed, also behind one that throws (CE2)', async () => {
    const client = await world.client();
    const heard: string[] = [];
    client.on('lost', () => {
      throw new Error('no');
    });
    client.on('lost', () => heard.push('heard'));
    const forget = client.on('lost', () => heard.push('removed'));
    forget();
    const session = await world.until(client.session());
    await world.until(client.sessions.close(session.lease));
    await world.run(10_000);
    expect([heard, session.state]).toEqual([['heard'], 'lost']);
  });
});

/** What `prom-client` would be given. */
class Instrument {
  static readonly made: Instrument[] = [];
  readonly options: { readonly name: string; readonly labelNames: string[]; readonly registers?: string[] };
  readonly values: unknown[] = [];

  constructor(options: Instrument['options']) {
    this.options = options;
    Instrument.made.push(this);
  }

  inc(labels: object): void {
    this.values.push(labels);
  }

  observe(labels: object, value: number): void {
    this.values.push([labels, value]);
  }
}

test('the adapter for prom-client registers every metric, and reports to it', () => {
  Instrument.made.length = 0;
  const adapter = prometheusMetrics({ Counter: Instrument, Histogram: Instrument }, 'registry');
  adapter.count('remora_client_session_events_total', { event: 'lost' });
  adapter.observe('remora_client_request_seconds', 0.5, { kind: 'kv' });
  expect(Instrument.made.map(({ options }) => options.name).sort()).toEqual(Object.keys(CLIENT_METRICS).sort());
  expect(Instrument.made.every(({ options }) => options.registers?.[0] === 'registry')).toBe(true);
  const values = (name: string): unknown => Instrument.made.find(({ options }) => options.name === name)?.values;
  expect(values('remora_client_session_events_total')).toEqual([{ event: 'lost' }]);
  expect(values('remora_client_request_seconds')).toEqual([[{ kind: 'kv' }, 0.5]]);
});

test('the adapter for OpenTelemetry reports under names with dots', () => {
  const told: unknown[] = [];
  const adapter = openTelemetryMetrics({
    createCounter: (name) => ({ add: (value, attributes) => told.push([name, value, attributes]) }),
    createHistogram: (name, { unit }) => ({
      record: (value, attributes) => told.push([name, unit, value, attributes]),
    }),
  });
  adapter.count('remora_client_requests_total', { kind: 'kv', code: 'OK' });
  adapter.observe('remora_client_lock_wait_seconds', 2, { mode: 'exclusive', code: 'OK' });
  expect(told).toEqual([
    ['remora.client.requests', 1, { kind: 'kv', code: 'OK' }],
    ['remora.client.lock.wait.duration', 's', 2, { mode: 'exclusive', code: 'OK' }],
  ]);
});
