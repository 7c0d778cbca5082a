/** `/v1/audit`: the records of two nodes, asked through one of them. */
import { NO_AUDIT, type PlainNeed, type Principal, RecentAudit } from '@remora/auth';
import { ManualClock } from '@remora/base/testing';
import type { Backend } from '@remora/gateway';
import { createRpcRegistry } from '@remora/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { serveAudit } from '../../packages/cli/src/node/audit-service.ts';
import { SHOP } from '../support/auth-admin.ts';
import { OF_ACCESS, unseenAnswers } from './described.ts';
import { HttpBed } from './http-bed.ts';

const ROOT: Principal = { name: 'root', method: 'token' };
const ANN: Principal = { name: 'ann', method: 'token' };
const OTHER = 7;

let bed: HttpBed;
let audits: Readonly<Record<'own' | 'other', RecentAudit>>;
let isOn: boolean;

beforeEach(() => {
  isOn = true;
  const clock = new ManualClock();
  const audit = () => new RecentAudit({ log: NO_AUDIT, clock, isAuthenticating: () => isOn });
  audits = { own: audit(), other: audit() };
  const [own, other] = [createRpcRegistry(), createRpcRegistry()];
  serveAudit(own, audits.own);
  serveAudit(other, audits.other);
  bed = new HttpBed(
    checked,
    undefined,
    new Map([
      [1, own],
      [OTHER, other],
    ]),
  );
  bed.auth.make(...SHOP);
});

/** The backend decides by users and roles, as that of a node. */
function checked({ backend }: HttpBed['world']): Backend {
  const check = (principal: Principal | undefined, needs: readonly PlainNeed[]): void =>
    bed.auth.known.authority.check(principal, needs);
  return new Proxy(backend, {
    get: (of, name) => {
      if (name === 'check') return check;
      return name === 'nodeId' ? 1 : Reflect.get(of, name);
    },
  });
}

const get = (query = '', principal = ROOT): Promise<Record<string, unknown>> =>
  bed.done({ method: 'GET', target: `/v1/audit${query}`, principal });

describe('the audit log', () => {
  test('is shown to root, the newest record first', async () => {
    audits.own.record({ action: 'logIn', decision: 'failed', principal: undefined, reason: 'wrong' });
    const principal = { name: 'ann', method: 'token', door: 'http', address: '10.0.0.9' } as const;
    audits.own.record({ action: 'put', decision: 'denied', principal, targets: ['write the key "a"'], requestId: 'r' });
    const timeMs = expect.any(Number);
    expect(await get()).toEqual({
      ...{ node: 1, isKept: true },
      records: [
        {
          ...{ number: 2, timeMs, principal: 'ann', method: 'token', address: '10.0.0.9', door: 'http' },
          ...{ action: 'put', decision: 'denied', targets: ['write the key "a"'], requestId: 'r' },
        },
        { number: 1, timeMs, method: 'none', action: 'logIn', decision: 'failed', targets: [], reason: 'wrong' },
      ],
    });
  });

  test('is shown in pages', async () => {
    for (let i = 0; i < 5; i++) audits.own.record({ action: `a${i}`, decision: 'allowed', principal: undefined });
    const actions = (page: Record<string, unknown>) =>
      (page.records as readonly { readonly action: string }[]).map(({ action }) => action);
    const first = await get('?limit=3');
    expect([actions(first), first.next]).toEqual([['a4', 'a3', 'a2'], 3]);
    const second = await get(`?limit=3&before=${first.next}`);
    expect([actions(second), second.next]).toEqual([['a1', 'a0'], undefined]);
  });

  test('of another node is shown by this one', async () => {
    audits.other.record({ action: 'elsewhere', decision: 'allowed', principal: undefined });
    expect(await get(`?node=${OTHER}`)).toMatchObject({ node: OTHER, records: [{ action: 'elsewhere' }] });
    expect(await get()).toMatchObject({ node: 1, records: [] });
  });

  test('says that it is not kept', async () => {
    isOn = false;
    expect(await get()).toEqual({ node: 1, isKept: false, records: [] });
  });
});

describe('is refused', () => {
  test('to everybody else, of this node and of others', async () => {
    audits.own.record({ action: 'secret', decision: 'allowed', principal: undefined });
    for (const target of ['/v1/audit', `/v1/audit?node=${OTHER}`, '/v1/audit?limit=x']) {
      expect(await bed.refused({ method: 'GET', target, principal: ANN })).toBe('403 PERMISSION_DENIED');
      expect(await bed.refused({ method: 'GET', target })).toBe('401 UNAUTHENTICATED');
    }
  });

  test.each(['?limit=0', '?limit=1001', '?before=-1', '?node=0', '?node=n1', '?user=ann'])('%s', async (query) => {
    const call = { method: 'GET', target: `/v1/audit${query}`, principal: ROOT };
    expect(await bed.refused(call)).toBe('400 INVALID_ARGUMENT');
  });

  test('a node of an earlier release has none', async () => {
    expect(await bed.refused({ method: 'GET', target: '/v1/audit?node=9', principal: ROOT })).toBe('501 UNIMPLEMENTED');
  });
});

test('every answer that the document names was seen', () => {
  expect(unseenAnswers((answer) => OF_ACCESS.test(answer) && / \/v1\/audit /.test(answer))).toEqual([]);
});
