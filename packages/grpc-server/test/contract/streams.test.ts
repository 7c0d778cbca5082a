// The contract of a gRPC server, seen through the client of grpc-js: streams of messages in both directions.
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SERVERS } from '../support/contract-servers.ts';
import { CODE, type ContractServer } from '../support/contract-service.ts';
import { GrpcJsClient, outcomeOf } from '../support/grpc-js-client.ts';

describe.each(SERVERS)('streams of $name', ({ start }) => {
  let server: ContractServer;
  let client: GrpcJsClient;

  beforeEach(async () => {
    server = await start();
    client = new GrpcJsClient(server.port);
  });
  afterEach(async () => {
    client.close();
    await server.stop();
  });

  describe('a client stream', () => {
    test.each([
      { count: 0, bytes: 0 },
      { count: 1, bytes: 0 },
      { count: 3_000, bytes: 100 },
      { count: 40, bytes: 100_000 },
    ])('of $count messages of $bytes bytes is answered at half-close', async ({ count, bytes }) => {
      const { call, outcome } = client.collect();
      for (let sent = 0; sent < count; sent++) {
        if (!call.write(Buffer.alloc(bytes, 'x'))) await once(call, 'drain');
      }
      call.end();
      const { code, answers } = await outcome;
      expect(code).toBe(CODE.ok);
      expect(answers.map(String)).toEqual([JSON.stringify({ count, bytes: count * bytes })]);
    });

    test('may be answered before half-close', async () => {
      const { call, outcome } = client.collect();
      call.write(Buffer.from('one'));
      call.write(Buffer.from('stop'));
      const { code, answers } = await outcome;
      expect(code).toBe(CODE.ok);
      expect(answers.map(String)).toEqual([JSON.stringify({ count: 2, bytes: 7 })]);
      expect((await client.echo(Buffer.from('next'))).code).toBe(CODE.ok);
    });
  });

  describe('a server stream', () => {
    test.each([
      { count: 0, bytes: 0 },
      { count: 1, bytes: 0 },
      { count: 3_000, bytes: 100 },
      { count: 40, bytes: 100_000 },
      { count: 3, bytes: 3_000_000 },
    ])('of $count messages of $bytes bytes arrives in order', async ({ count, bytes }) => {
      const { code, answers } = await outcomeOf(client.produce({ count, bytes }));
      expect(code).toBe(CODE.ok);
      expect(answers).toHaveLength(count);
      answers.forEach((answer, index) => {
        expect(answer.length).toBe(bytes);
        if (bytes > 0) expect(answer[bytes - 1]).toBe((index + 1) & 0xff);
      });
    });

    test('brings its messages before its failure', async () => {
      const fail = { code: CODE.aborted, message: 'at the end' };
      const outcome = await outcomeOf(client.produce({ count: 20, bytes: 10_000, fail }));
      expect(outcome).toMatchObject(fail);
      expect(outcome.answers).toHaveLength(20);
    });

    test('fails without any message', async () => {
      const fail = { code: CODE.notFound, message: 'no message' };
      expect(await outcomeOf(client.produce({ count: 0, bytes: 0, fail }))).toMatchObject({ ...fail, answers: [] });
    });

    test('waits for a client that does not read, which does not hinder other calls', async () => {
      const call = client.produce({ count: 1_000, bytes: 100_000 });
      call.pause();
      await once(call, 'metadata');
      const others = await Promise.all(Array.from({ length: 50 }, () => client.echo(Buffer.alloc(20_000))));
      expect(others.every(({ code }) => code === CODE.ok)).toBe(true);
      expect(server.observed.written).toBeLessThan(200);
      const outcome = outcomeOf(call);
      call.resume();
      expect((await outcome).answers).toHaveLength(1_000);
    });

    test('that the client cancels stops', async () => {
      const call = client.produce({ count: 1_000_000, bytes: 1_000 });
      const outcome = outcomeOf(call);
      await once(call, 'data');
      call.cancel();
      expect((await outcome).code).toBe(CODE.cancelled);
      await expect.poll(() => server.observed.cancelled).toBe(1);
      expect(server.observed.written).toBeLessThan(1_000_000);
    });

    test('ends at its deadline', async () => {
      const call = client.produce({ count: 2, bytes: 10, stayOpen: true }, { deadlineMs: 200 });
      const { code, answers } = await outcomeOf(call);
      expect({ code, count: answers.length }).toEqual({ code: CODE.deadlineExceeded, count: 2 });
      await expect.poll(() => server.observed.cancelled).toBe(1);
    });
  });

  describe('a stream in both directions', () => {
    test('answers each message before the next is sent', async () => {
      const call = client.chat();
      const outcome = outcomeOf(call);
      for (const text of ['one', 'two', 'three']) {
        call.write(Buffer.from(text));
        const [answer] = (await once(call, 'data')) as [Buffer];
        expect(answer.toString()).toBe(text);
      }
      call.end();
      expect(await outcome).toMatchObject({ code: CODE.ok });
    });

    test('carries many messages both ways at once', async () => {
      const call = client.chat();
      const outcome = outcomeOf(call);
      const sizes = Array.from({ length: 2_000 }, (_, index) => (index * 37) % 5_000);
      for (const size of sizes) if (!call.write(Buffer.alloc(size, 'x'))) await once(call, 'drain');
      call.end();
      const { code, answers } = await outcome;
      expect(code).toBe(CODE.ok);
      expect(answers.map(({ length }) => length)).toEqual(sizes);
    });

    test('is not read while its method pauses it, and then goes on', async () => {
      const call = client.chat();
      const outcome = outcomeOf(call);
      call.write(Buffer.from('hold'));
      await expect.poll(() => server.observed.held.length).toBe(1);
      for (let sent = 0; sent < 500; sent++) call.write(Buffer.alloc(10_000, 'x'));
      call.end();
      const others = await Promise.all(Array.from({ length: 50 }, () => client.echo(Buffer.alloc(20_000))));
      expect(others.every(({ code }) => code === CODE.ok)).toBe(true);
      expect(server.observed.received).toBeLessThan(100);
      server.observed.release();
      const { code, answers } = await outcome;
      expect({ code, count: answers.length }).toEqual({ code: CODE.ok, count: 500 });
    });

    test('ends with the failure of its method before half-close', async () => {
      const call = client.chat();
      const outcome = outcomeOf(call);
      call.write(Buffer.from('fail'));
      expect(await outcome).toMatchObject({ code: CODE.aborted, message: 'as asked' });
      expect((await client.echo(Buffer.from('next'))).code).toBe(CODE.ok);
    });

    test('many at a time do not mix', async () => {
      const texts = Array.from({ length: 90 }, (_, index) => `stream ${index}`);
      const outcomes = texts.map(async (text) => {
        const call = client.chat();
        const outcome = outcomeOf(call);
        for (let sent = 0; sent < 20; sent++) call.write(Buffer.from(`${text}, message ${sent}`));
        call.end();
        return (await outcome).answers.map(String);
      });
      for (const [index, answers] of (await Promise.all(outcomes)).entries()) {
        expect(answers).toEqual(Array.from({ length: 20 }, (_, sent) => `${texts[index]}, message ${sent}`));
      }
    });
  });
});
