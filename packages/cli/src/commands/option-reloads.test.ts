import { parseOptions } from '@remora/base';
import { createPinoLogger } from '@remora/base/node';
import { describe, expect, test } from 'vitest';
import { type NodeOptions, nodeSchema } from '../node-options.ts';
import { OptionReloads } from './option-reloads.ts';

const optionsOf = (flags: Readonly<Record<string, string>>): NodeOptions => parseOptions(nodeSchema, { flags });

function setUp() {
  const said: Readonly<Record<string, unknown>>[] = [];
  const logger = createPinoLogger({ level: 'info', destination: { write: (line) => said.push(JSON.parse(line)) } });
  const reloaded: NodeOptions[] = [];
  let now: () => NodeOptions = () => optionsOf({});
  const reloads = new OptionReloads(optionsOf({}), () => now(), logger);
  const reload = (flags: Readonly<Record<string, string>> | Error): void => {
    now = () => {
      if (flags instanceof Error) throw flags;
      return optionsOf(flags);
    };
    reloads.reload({ reload: async (options) => void reloaded.push(options) });
  };
  return { reload, logger, said, reloaded };
}

describe('SIGHUP', () => {
  test('changes the log level when the options do, and leaves one that somebody has set (OR1)', () => {
    const { reload, logger } = setUp();
    reload({ logLevel: 'debug' });
    expect(logger.level).toBe('debug');
    logger.level = 'warn';
    reload({ logLevel: 'debug' });
    expect(logger.level).toBe('warn');
    reload({ logLevel: 'info' });
    expect(logger.level).toBe('info');
  });

  test('passes on addresses, and names the options that wait for a restart', () => {
    const { reload, said, reloaded } = setUp();
    reload({ initialCluster: 'n1=a:1', peerProxies: 'n2=b:1', checkpointInterval: '20s', diskReserve: '1GiB' });
    expect(reloaded[0]?.initialCluster).toEqual([{ name: 'n1', peer: { host: 'a', port: 1 } }]);
    const warned = said.filter(({ level }) => level === 'warn');
    expect(warned).toEqual([expect.objectContaining({ options: ['--checkpoint-interval', '--disk-reserve'] })]);
  });

  test('with options that cannot be read changes none, and reads the other files again (OR2)', () => {
    const { reload, logger, said, reloaded } = setUp();
    reload({ logLevel: 'debug', initialCluster: 'n1=a:1' });
    reload(new Error('not YAML'));
    expect(logger.level).toBe('debug');
    expect(reloaded[1]).toEqual(reloaded[0]);
    expect(said.filter(({ level }) => level === 'error')).toEqual([
      expect.objectContaining({ error: 'Error: not YAML' }),
    ]);
  });
});
