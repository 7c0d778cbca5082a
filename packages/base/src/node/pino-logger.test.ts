import { expect, test } from 'vitest';
import { createPinoLogger, type LogLevel } from './pino-logger.ts';

function capture(options: { level: LogLevel; pretty?: boolean; fields?: Record<string, unknown> }) {
  const lines: string[] = [];
  const logger = createPinoLogger({ ...options, destination: { write: (line) => lines.push(line) } });
  return { logger, lines };
}

test('a record is one JSON object with time, level, message and fields', () => {
  const { logger, lines } = capture({ level: 'info', fields: { node: 'n1' } });
  logger.child({ range: 7 }).warn({ lag: 3 }, 'follower lags');
  expect(lines).toHaveLength(1);
  const record = JSON.parse(lines[0] ?? '');
  expect(record).toMatchObject({ level: 'warn', node: 'n1', range: 7, lag: 3, msg: 'follower lags' });
  expect(record.time).toMatch(/^\d{4}-\d\d-\d\dT/);
});

test('records below the level are dropped', () => {
  const { logger, lines } = capture({ level: 'warn' });
  logger.debug({}, 'a');
  logger.info({}, 'b');
  logger.error({}, 'c');
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['c']);
});

test('the level of a logger and of all its children can change', () => {
  const { logger, lines } = capture({ level: 'warn' });
  const child = logger.child({ range: 7 }).child({ replica: 8 });
  child.info({}, 'a');
  logger.setLevel('debug');
  child.debug({}, 'b');
  logger.setLevel('error');
  for (const one of [logger, child]) one.warn({}, 'c');
  child.error({}, 'd');
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({ msg: 'b', level: 'debug', range: 7, replica: 8 }),
    expect.objectContaining({ msg: 'd' }),
  ]);
});

test('an error is written with its stack and its cause', () => {
  const { logger, lines } = capture({ level: 'info' });
  logger.error({ error: new Error('outer', { cause: new Error('inner') }) }, 'failed');
  const { error } = JSON.parse(lines[0] ?? '');
  expect(error.message).toContain('outer');
  expect(error.stack).toContain('inner');
});

test('the readable form has nothing that a terminal acts upon, wherever it comes from', () => {
  const { logger, lines } = capture({ level: 'info', pretty: true });
  const hostile = '\u001b[2J\u009b\u202e\u200b\u007f';
  const error = new Error(`${hostile}\nforged`);
  logger.warn({ [hostile]: 1, name: hostile, nested: { name: `${hostile}\n` }, error }, `${hostile}\nforged`);
  const text = lines.join('');
  expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  expect(text).toContain('\\u001b[2J\\u009b\\u202e\\u200b\\u007f');
  expect(text.match(/^forged/gm)).toBeNull();
});

test('JSON has nothing that a terminal acts upon either, and keeps its meaning', () => {
  const { logger, lines } = capture({ level: 'info' });
  const hostile = '\u001b[2J\u009b\u202e\u200b\u007f\u2028\n';
  logger.warn({ [hostile]: 1, name: hostile, error: new Error(hostile) }, hostile);
  expect(lines.join('')).toMatch(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*\n$/u);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ [hostile]: 1, name: hostile, msg: hostile });
});

test('the readable form is one line with the fields behind the message', () => {
  const { logger, lines } = capture({ level: 'info', pretty: true });
  logger.info({ node: 'n1', text: 'two words' }, 'started');
  expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d\.\d{3} INFO {2}started {2}node=n1 text="two words"\n$/);
});
