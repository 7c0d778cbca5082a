import { describe, expect, expectTypeOf, test } from 'vitest';
import { describeOptions, optionsReference } from './describe.ts';
import { type OptionSources, OptionsError, parseOptions } from './parse.ts';
import { defineOptions, type Options } from './schema.ts';
import { editDistance, suggest } from './suggest.ts';
import { bool, durationMs, int, list, oneOf, string } from './types.ts';

const schema = defineOptions({
  envPrefix: 'REMORA',
  definitions: {
    dataDir: { type: string({ placeholder: '<path>' }), required: true, desc: 'Where the data is.' },
    logLevel: { type: oneOf(['debug', 'info']), default: 'info', desc: 'How much is logged.', group: 'Logging' },
    heartbeat: { type: durationMs({ min: 1 }), default: 100, desc: 'How often the leader says that it is alive.' },
    electionTimeout: { type: durationMs(), default: 1000, desc: 'How long a follower waits for the leader.' },
    roles: { type: list(oneOf(['master', 'data'])), default: ['master', 'data'], desc: 'What the node does.' },
    insecure: { type: bool(), default: false, desc: 'Allow others to connect.' },
    workers: { type: int(), desc: 'How many.' },
  },
  relations: [
    {
      between: ['electionTimeout', 'heartbeat'],
      holds: ({ electionTimeout, heartbeat }) => electionTimeout > 2 * heartbeat,
      must: 'be more than twice --heartbeat',
    },
  ],
});

const flags = { dataDir: '/data' };

function problems(sources: OptionSources): readonly string[] {
  try {
    parseOptions(schema, sources);
  } catch (error) {
    if (error instanceof OptionsError) return error.problems.map(({ source, message }) => `${source}: ${message}`);
    throw error;
  }
  return [];
}

describe('values', () => {
  test('a flag goes before the environment, that before the file, that before the default', () => {
    const file = { path: 'r.yaml', values: { 'log-level': 'debug', heartbeat: '10ms', 'election-timeout': '9s' } };
    const env = { REMORA_HEARTBEAT: '20ms', REMORA_ELECTION_TIMEOUT: '8s' };
    const options = parseOptions(schema, { flags: { ...flags, electionTimeout: '7s' }, env, file });
    expect(options).toMatchObject({ electionTimeout: 7000, heartbeat: 20, logLevel: 'debug', insecure: false });
  });

  test('an option that nobody gave is its default, or undefined without one', () => {
    expect(parseOptions(schema, { flags })).toMatchObject({ roles: ['master', 'data'], workers: undefined });
  });

  test('a repeated flag adds to a list', () => {
    expect(parseOptions(schema, { flags: { ...flags, roles: ['data', 'master'] } }).roles).toEqual(['data', 'master']);
  });

  test('an empty variable counts as not set', () => {
    expect(parseOptions(schema, { flags, env: { REMORA_LOG_LEVEL: '' } }).logLevel).toBe('info');
  });

  test('the result is frozen, lists included', () => {
    const options = parseOptions(schema, { flags });
    expect(Object.isFrozen(options)).toBe(true);
    expect(Object.isFrozen(options.roles)).toBe(true);
  });

  test('the types of the values follow from the schema', () => {
    expectTypeOf<Options<typeof schema>>().toEqualTypeOf<{
      readonly dataDir: string;
      readonly logLevel: 'debug' | 'info';
      readonly heartbeat: number;
      readonly electionTimeout: number;
      readonly roles: readonly ('master' | 'data')[];
      readonly insecure: boolean;
      readonly workers: number | undefined;
    }>();
  });
});

describe('errors', () => {
  const rows: readonly { name: string; given: OptionSources; expect: readonly string[] }[] = [
    {
      name: 'a required option that is missing is named with its flag and its variable',
      given: {},
      expect: ['--data-dir: is required (or set REMORA_DATA_DIR)'],
    },
    {
      name: 'a wrong flag is named with its value and what would be right',
      given: { flags: { ...flags, logLevel: 'loud' } },
      expect: ['--log-level: invalid value "loud": expected one of debug, info'],
    },
    {
      name: 'a wrong variable is named as a variable',
      given: { flags, env: { REMORA_HEARTBEAT: '5' } },
      expect: ['REMORA_HEARTBEAT: invalid value "5": expected a duration such as 100ms, 5s or 2m, at least 1ms'],
    },
    {
      name: 'a wrong line of a file is named with its number',
      given: { flags, file: { path: 'r.yaml', values: { workers: 'two' }, lines: { workers: 4 } } },
      expect: ['r.yaml:4 (workers): invalid value "two": expected a whole number'],
    },
    {
      name: 'an unknown key of a file is refused with a suggestion',
      given: { flags, file: { path: 'r.yaml', values: { 'log-levl': 'info' }, lines: { 'log-levl': 2 } } },
      expect: ['r.yaml:2 (log-levl): unknown key; did you mean log-level?'],
    },
    {
      name: 'a key in camelCase is told its spelling',
      given: { flags, file: { path: 'r.yaml', values: { logLevel: 'info' } } },
      expect: ['r.yaml (logLevel): unknown key; did you mean log-level?'],
    },
    {
      name: 'a misspelt variable is refused, and a foreign one left alone',
      given: {
        flags,
        env: { REMORA_LOG_LEVLE: 'debug', REMORA_DEV_DATA_DIR: 'x', REMORA_ENDPOINTS: 'a:1', PATH: '/bin' },
      },
      expect: ['REMORA_LOG_LEVLE: unknown variable; did you mean REMORA_LOG_LEVEL?'],
    },
    {
      name: 'variables that Kubernetes makes for services beside a pod are left alone',
      given: {
        flags,
        env: {
          REMORA_WORKERS: 'tcp://10.96.0.7:7480',
          REMORA_WORKER: 'tcp://10.96.0.7:7480',
          REMORA_PORT_7480_TCP_ADDR: '10.96.0.7',
          REMORA_SERVICE_HOST: '10.96.0.7',
        },
      },
      expect: [],
    },
    {
      name: 'an unknown flag is refused',
      given: { flags: { ...flags, insecur: true } },
      expect: ['--insecur: unknown flag; did you mean --insecure?'],
    },
    {
      name: 'a broken relation names both values and where each came from',
      given: { flags: { ...flags, electionTimeout: '150ms' } },
      expect: [
        '--election-timeout: must be more than twice --heartbeat; ' +
          'election-timeout is 150ms (--election-timeout), heartbeat is 100ms (default)',
      ],
    },
    {
      name: 'all problems are reported together',
      given: { flags: { logLevel: 'loud', workers: 'x' } },
      expect: [
        '--data-dir: is required (or set REMORA_DATA_DIR)',
        '--log-level: invalid value "loud": expected one of debug, info',
        '--workers: invalid value "x": expected a whole number',
      ],
    },
  ];
  test.each(rows)('$name', ({ given, expect: expected }) => {
    expect(problems(given)).toEqual(expected);
  });
});

test('each option is described with its flag, variable, key and default', () => {
  const [first, second] = describeOptions(schema);
  expect(first).toMatchObject({ usage: '--data-dir <path>', env: 'REMORA_DATA_DIR', key: 'data-dir' });
  expect(second).toMatchObject({ usage: '--log-level <debug|info>', defaultText: 'info', group: 'Logging' });
  expect(optionsReference(schema)).toContain(
    '| `--log-level <debug\\|info>` | `REMORA_LOG_LEVEL` | `info` | How much is logged. |',
  );
});

describe('suggestions', () => {
  test.each([
    { a: 'heartbeat', b: 'heartbeat', distance: 0 },
    { a: 'hearbteat', b: 'heartbeat', distance: 1 },
    { a: 'kitten', b: 'sitting', distance: 3 },
    { a: '', b: 'abc', distance: 3 },
  ])('"$a" is $distance from "$b"', ({ a, b, distance }) => expect(editDistance(a, b)).toBe(distance));

  test('the closest candidate is suggested, and none when all are far', () => {
    expect(suggest('rols', ['roles', 'rules'])).toBe('roles');
    expect(suggest('xyz', ['roles', 'rules'])).toBeUndefined();
  });
});
