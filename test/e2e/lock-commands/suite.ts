/** Lock commands of others beside `remora lock run`: their exit codes are those of the page on replacing them. */
import { describe, expect, test } from 'vitest';
import { readPage } from '../../../packages/cli/test/docs/pages.ts';
import { describeWith } from '../../support/needs.ts';
import type { RemoraCommand } from '../command.ts';
import { Etcdctl } from '../etcd-twins/etcdctl.ts';
import { eventually } from '../eventually.ts';
import { documentedCodes, flockCode, missingEtcdctl34, missingFlock, ROWS } from './table.ts';

const PAGE = 'docs/how-to/locks/replace-lock-commands.md';
const CODES = documentedCodes(readPage(PAGE));

export function describeLockCommands(command: RemoraCommand, endpoint: () => string): void {
  const codeOf = (what: string, column: number): string | undefined => CODES.get(what)?.[column];

  test('the page on lock commands has a row for each row that is tested', () => {
    expect([...CODES.keys()]).toEqual(ROWS.map(({ what }) => what));
  });

  describeWith(missingFlock(), 'flock', () => {
    test.each(ROWS)('$what', async (row) => {
      expect(String(await flockCode(row))).toBe(codeOf(row.what, 0));
    });
  });

  describeWith(missingEtcdctl34(), 'etcdctl lock', () => {
    test.each(ROWS.filter(({ etcdctl }) => etcdctl !== undefined))('$what', async (row) => {
      const run = new Etcdctl(endpoint(), ['lock', ...(row.etcdctl ?? []), 'commands', ...row.command]);
      expect(String((await run.end()).code)).toBe(codeOf(row.what, 1));
    });

    test.each(ROWS.filter(({ etcdctl }) => etcdctl === undefined))('$what: it has nothing like it', ({ what }) => {
      expect(codeOf(what, 1)).toBe('–');
    });
  });

  describe('remora lock run', () => {
    test.each(ROWS)('$what', async ({ what, taken, remora, command: child }) => {
      const name = `commands/${what}`;
      if (taken) {
        const holder = command.begin(['lock', 'run', name, '--', 'sh', '-c', 'echo held; exec sleep 600']);
        await eventually('it is held', () => holder.out.includes('held'));
      }
      const { code } = await command.run('lock', 'run', ...remora, name, '--', ...child);
      expect(String(code)).toBe(codeOf(what, 2));
    });
  });
}
