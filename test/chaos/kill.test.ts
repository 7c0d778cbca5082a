import { beforeAll, describe, expect, test } from 'vitest';
import { type KillReport, runKills } from './kill.ts';
import { type Evidence, faultsOf } from './verdict.ts';

const SEED = Number(process.env.REMORA_CHAOS_SEED ?? Date.now() % 1_000_000);

describe(`nodes killed under load (again: REMORA_CHAOS_SEED=${SEED} npx vitest run test/chaos/kill.test.ts)`, () => {
  let evidence: Evidence;
  let report: KillReport;

  beforeAll(async () => {
    ({ evidence, report } = await runKills({ kills: 5, seed: SEED }));
  }, 120_000);

  test('each kill met requests in flight, and a third of them the leader', () => {
    expect(report.kills).toHaveLength(5);
    expect(report.kills.every(({ inFlight }) => inFlight > 0)).toBe(true);
    expect(report.kills.filter(({ leader }) => leader).length * 3).toBeGreaterThanOrEqual(report.kills.length);
  });

  test('some outcomes were unknown, most were not, and locks went round', () => {
    expect(report.unknown).toBeGreaterThan(0);
    expect(report.acknowledged).toBeGreaterThan(500);
    expect(report.lockTurns).toBeGreaterThan(20);
  });

  test('nothing acknowledged was lost, nothing was applied twice, no lock had two holders, reads were current', () => {
    expect(report.faults).toEqual([]);
  });

  describe('a fault put into what was recorded is found:', () => {
    test('a lost write', () => {
      const [key, values] = [...evidence.events].find(([, each]) => each.some((value) => acknowledged(value))) ?? [];
      const lost = values?.find((value) => acknowledged(value));
      const events = new Map(evidence.events).set(key ?? '', values?.filter((value) => value !== lost) ?? []);
      expect(faultsOf({ ...evidence, events })).toContainEqual(
        expect.stringContaining('an acknowledged write is lost'),
      );
    });

    test('a lost write, as readers of the list see it', () => {
      const lists = evidence.lists.map((op) => {
        if (op.op !== 'get' || !Array.isArray(op.out)) return op;
        return { ...op, out: op.out.filter((element) => element !== firstAcknowledged(op.k)) };
      });
      expect(faultsOf({ ...evidence, lists })).toContainEqual(expect.stringContaining('lists: violation'));
    });

    test('a lost write, as readers of the register see it', () => {
      // Of a key without unknown outcomes, so that nothing else could explain it.
      const unsure = new Set(evidence.registers.flatMap(({ k, t1 }) => (t1 === null ? [k] : [])));
      const last = evidence.registers.findLast(
        ({ c, k, op, out }) => c === 'reader' && op === 'get' && out !== null && !unsure.has(k),
      );
      expect(last).toBeDefined();
      const registers = evidence.registers.map((op) => (op === last ? { ...op, out: null } : op));
      expect(faultsOf({ ...evidence, registers })).toContainEqual(expect.stringContaining('registers: violation'));
    });

    test('a write that was applied twice', () => {
      const [key, values = []] =
        [...evidence.events].find(([name, each]) => name.startsWith('list/') && each.length > 0) ?? [];
      const twice = [...values, values[0] ?? ''];
      const events = new Map(evidence.events).set(key ?? '', twice);
      const lists = evidence.lists.map((op) => (op.op === 'get' && op.k === key ? { ...op, out: twice } : op));
      const faults = faultsOf({ ...evidence, events, lists });
      expect(faults).toContainEqual(expect.stringContaining('applied twice'));
      expect(faults).toContainEqual(expect.stringContaining('was applied twice'));
      expect(faults).toContainEqual(expect.stringContaining('lists: violation'));
    });

    test('a lock that two hold', () => {
      const grant = evidence.locks.find(({ op, ok }) => op === 'acquire' && ok);
      const release = evidence.locks.find(({ op, ok, c }) => op === 'release' && ok && c === grant?.c);
      if (grant === undefined || release === undefined || grant.t1 === null) throw new Error('no lock was held');
      const meanwhile = { t0: grant.t1 + 1, t1: grant.t1 + 2 };
      const second = { ...grant, c: 'a second holder', out: Number(grant.out) + 0.5, ...meanwhile };
      expect(release.t0).toBeGreaterThan(second.t1);
      expect(faultsOf({ ...evidence, locks: [...evidence.locks, second] })).toContainEqual(
        expect.stringContaining('locks: violation'),
      );
    });

    function acknowledged(value: string): boolean {
      return evidence.writes.get(value)?.outcome === 'done';
    }

    function firstAcknowledged(key: string): string | undefined {
      return evidence.events.get(key)?.find(acknowledged);
    }
  });
});
