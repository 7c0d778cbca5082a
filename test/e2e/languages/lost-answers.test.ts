/** What the clients in Python and Go send, repeat and report, to gateways that lose answers. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../../support/needs.ts';
import { TestCertificates } from '../tls-certificates.ts';
import { LANGUAGES, type Language, missingLanguages, Programs } from './programs.ts';
import { type Reaction, refusal, ScriptedGateway } from './scripted-gateway.ts';

const UNKNOWN = { python: 'UNKNOWN_OUTCOME', go: 'the outcome is unknown' };
const UNAVAILABLE = { python: 'UNAVAILABLE', go: 'remora: unavailable' };
/** Calls that no gateway answers end soon. */
const SOON = { REMORA_TIMEOUT: '3' };
const WRITTEN = { status: 200, body: { modRevision: 7 } };
const VALID_MS = 6_000;
const GRANT = { session: 'ab.1', token: 'x', version: 5, ttlMs: 7_000, validMs: VALID_MS, lockTimeMs: 1 };
const RENEWED = { status: 200, body: { session: 'ab.1', ttlMs: 7_000, validMs: VALID_MS } };

describeWith(missingLanguages(), 'the clients in Python and Go, when answers are lost', () => {
  const programs = new Programs();
  const gateways: ScriptedGateway[] = [];
  let certificates: TestCertificates;
  beforeAll(async () => {
    programs.build();
    certificates = new TestCertificates();
    await certificates.run('init');
    await certificates.run('node', 'n1');
    await certificates.run('client', 'orders');
  });
  afterAll(() => {
    certificates.close();
    programs.remove();
    for (const gateway of gateways) gateway.stop();
  });

  const gatewayThat = async (...[react, tls]: Parameters<typeof ScriptedGateway.start>) => {
    const gateway = await ScriptedGateway.start(react, tls);
    gateways.push(gateway);
    return gateway;
  };
  const put = (language: Language, through: readonly ScriptedGateway[]) => {
    const addresses = through.map(({ address }) => address);
    return programs.begin(language, addresses, ['put', 'key', 'value'], SOON);
  };
  const hold = (language: Language, through: readonly ScriptedGateway[], ...options: readonly string[]) =>
    programs.begin(
      language,
      through.map(({ address }) => address),
      ['hold', ...options, 'orders/42'],
    );

  test.concurrent.each(LANGUAGES)(
    '%s: a put whose answer was lost is repeated as the same request',
    async (language) => {
      const loses = await gatewayThat(() => 'lost');
      const answers = await gatewayThat(() => WRITTEN);
      expect(await put(language, [loses, answers]).done()).toBe('revision 7\n');
      const [first, second] = [loses.calls[0], answers.calls[0]];
      expect(first?.body.requestId).toMatch(/^[\da-f-]{32,}$/);
      expect(second?.body).toEqual(first?.body);
      expect(second?.path).toBe('/v1/kv/key');
    },
  );

  test.concurrent.each(LANGUAGES)('%s: a put that no gateway carried out has changed nothing', async (language) => {
    const refusing = await gatewayThat(() => refusal(503, 'NOT_LEADER'));
    const dead = await gatewayThat(() => WRITTEN);
    dead.stop();
    const run = put(language, [refusing, dead]);
    expect(await run.ended).toBe(1);
    expect(run.output).toContain(UNAVAILABLE[language]);
    expect(new Set(refusing.calls.map(({ body }) => body.requestId)).size).toBe(1);
    expect(refusing.calls.length).toBeGreaterThan(1);
  });

  test.concurrent.each(LANGUAGES)('%s: the outcome of a put without any answer is unknown', async (language) => {
    let isFirst = true;
    const loses = await gatewayThat((): Reaction => {
      const reaction = isFirst ? 'lost' : refusal(503, 'NOT_LEADER');
      isFirst = false;
      return reaction;
    });
    const run = put(language, [loses]);
    expect(await run.ended).toBe(1);
    expect(run.output).toContain(UNKNOWN[language]);
  });

  test.concurrent.each(LANGUAGES)('%s: a refusal does not tell how an earlier attempt went', async (language) => {
    const loses = await gatewayThat(() => refusal(504, 'UNKNOWN_OUTCOME'));
    const refuses = await gatewayThat(() => refusal(403, 'PERMISSION_DENIED'));
    const run = put(language, [loses, refuses]);
    expect(await run.ended).toBe(1);
    expect(run.output).toContain(UNKNOWN[language]);
    expect(run.output).toContain('PERMISSION_DENIED');
  });

  test.concurrent.each(LANGUAGES)('%s: what is refused is not repeated', async (language) => {
    const refuses = await gatewayThat(() => refusal(403, 'PERMISSION_DENIED'));
    const run = put(language, [refuses, refuses]);
    expect(await run.ended).toBe(1);
    expect(run.output).not.toContain(UNKNOWN[language]);
    expect(run.output).toContain('PERMISSION_DENIED');
    expect(refuses.calls).toHaveLength(1);
  });

  test.concurrent.each(LANGUAGES)('%s: an acquire that failed is given up by its token', async (language) => {
    const gateway = await gatewayThat(({ path }) =>
      path.endsWith('/acquire') ? refusal(423, 'LOCK_TIMEOUT') : { status: 200, body: { released: true } },
    );
    const run = hold(language, [gateway]);
    expect(await run.ended).toBe(1);
    expect(run.output).toContain('LOCK_TIMEOUT');
    const [acquire, release] = gateway.calls;
    expect([acquire?.path, release?.path]).toEqual(
      ['acquire', 'release'].map((call) => `/v1/locks/default/orders%2F42/${call}`),
    );
    expect(release?.body.token).toBe(acquire?.body.token);
    expect(String(acquire?.body.token).length).toBeGreaterThanOrEqual(32);
  });

  test.concurrent.each(LANGUAGES)('%s: a gateway that falls silent is left, with the same token', async (language) => {
    const silent = await gatewayThat(() => 'none');
    const second = await gatewayThat(({ path }) =>
      path.endsWith('/acquire') ? refusal(423, 'LOCK_TIMEOUT') : { status: 200, body: { released: true } },
    );
    const run = hold(
      language,
      [silent, second],
      '--wait',
      language === 'go' ? '60s' : '60',
      '--ttl',
      language === 'go' ? '2s' : '2',
    );
    expect(await run.ended).toBe(1);
    const [before, after] = [silent.calls[0]?.body, second.called('/acquire')[0]?.body];
    expect(after?.token).toBe(before?.token);
    expect(after?.wait).toBeLessThan(Number(before?.wait));
  });

  test.concurrent.each(LANGUAGES)('%s: a renewal counts from when it was sent', async (language) => {
    let renewals = 0;
    const gateway = await gatewayThat(async ({ path }): Promise<Reaction> => {
      if (path.endsWith('/acquire')) return { status: 200, body: GRANT };
      if (path.endsWith('/release')) return { status: 200, body: { released: false, code: 'LOCK_NOT_HELD' } };
      renewals++;
      if (renewals > 1) return refusal(409, 'LOCK_NOT_HELD');
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      return RENEWED;
    });
    const [version, validUntilMs = 0] = await hold(language, [gateway]).until(
      /lost .* version (\d+) valid-until (\d+)/,
    );
    expect(version).toBe(GRANT.version);
    const [renewal] = gateway.called('/renew');
    expect(validUntilMs).toBeLessThanOrEqual((renewal?.atMs ?? 0) + VALID_MS);
    expect(validUntilMs).toBeGreaterThan(renewal?.atMs ?? 0);
    expect(renewal?.body).toMatchObject({ session: GRANT.session, version: GRANT.version });
  });

  test.concurrent.each(LANGUAGES)(
    '%s: a lock that is lost before the first renewal is not handed out',
    async (language) => {
      const gateway = await gatewayThat(({ path }) => {
        if (path.endsWith('/acquire')) return { status: 200, body: GRANT };
        return path.endsWith('/renew') ? refusal(410, 'SESSION_EXPIRED') : { status: 200, body: { released: false } };
      });
      const run = hold(language, [gateway]);
      expect(await run.ended).toBe(1);
      expect(run.output).not.toContain('held orders/42');
      expect(run.output).toContain('SESSION_EXPIRED');
    },
  );

  test.concurrent.each(LANGUAGES)(
    '%s: credentials and a certificate go over TLS to a gateway that the CA knows',
    async (language) => {
      const [cert, key, authority] = ['n1.crt', 'n1.key', 'ca.crt'].map((name) => certificates.text(name));
      const tls = { cert, key, ca: authority, requestCert: true, rejectUnauthorized: true };
      const gateway = await gatewayThat(() => WRITTEN, tls);
      const runs = async (env: Record<string, string>) => {
        const run = programs.begin(language, [gateway.address], ['put', 'key', 'value'], env);
        return { code: await run.ended, output: run.output };
      };
      const own = {
        REMORA_CERT: certificates.path('client-orders.crt'),
        REMORA_KEY: certificates.path('client-orders.key'),
      };
      const ca = { ...own, REMORA_CA: certificates.path('ca.crt') };
      expect(await runs({ ...ca, REMORA_USER: 'ann', REMORA_PASSWORD: 'se cret' })).toMatchObject({ code: 0 });
      expect(await runs({ ...ca, REMORA_TOKEN: 'r1.abc' })).toMatchObject({ code: 0 });
      const basic = Buffer.from('ann:se cret').toString('base64');
      expect(gateway.calls.map(({ authorization }) => authorization)).toEqual([`Basic ${basic}`, 'Bearer r1.abc']);
      const untrusted = await runs({ ...SOON, ...own, REMORA_TOKEN: 'r1.abc' });
      expect(untrusted.output).toContain(UNAVAILABLE[language]);
      expect(untrusted.output).toMatch(/certificate/);
      expect(gateway.calls).toHaveLength(2);
    },
  );

  test.concurrent.each(LANGUAGES)('%s: credentials are not sent in plain text beyond loopback', async (language) => {
    const run = programs.begin(language, ['http://192.0.2.1:7482'], ['put', 'key', 'value'], {
      REMORA_TOKEN: 'r1.abc',
    });
    expect(await run.ended).toBe(1);
    expect(run.output).toContain('plain text: use https://');
  });
});
