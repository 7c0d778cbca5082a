// The contract of a gRPC server: how it shuts down without losing a call, and how often it lets clients ping.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SERVERS } from '../support/contract-servers.ts';
import { CODE, type ContractServer } from '../support/contract-service.ts';
import { ERROR, FLAG, FRAME, type Frame, frame, ping } from '../support/frames.ts';
import { GrpcJsClient, outcomeOf } from '../support/grpc-js-client.ts';
import { startOwnServer } from '../support/own-server.ts';
import { data, message, openCall, RawClient, unaryCall } from '../support/raw-client.ts';

const ECHO = '/test.Contract/Echo';
const CHAT = '/test.Contract/Chat';

function isGoaway({ type }: Frame): boolean {
  return type === FRAME.goaway;
}

function goaways({ frames }: RawClient): readonly { readonly last: number; readonly code: number }[] {
  return frames
    .filter(isGoaway)
    .map(({ payload }) => ({ last: payload.readUInt32BE(0), code: payload.readUInt32BE(4) }));
}

describe.each(SERVERS)('a drain of $name', ({ start }) => {
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

  test('lets calls end and refuses new ones', async () => {
    const chat = client.chat();
    const outcome = outcomeOf(chat);
    chat.write(Buffer.from('before'));
    await expect.poll(() => server.observed.received).toBe(1);
    let isDrained = false;
    const drained = server.drain().then(() => {
      isDrained = true;
    });
    const late = new GrpcJsClient(server.port);
    expect((await late.echo(Buffer.alloc(0))).code).toBe(CODE.unavailable);
    late.close();
    chat.write(Buffer.from('during'));
    await expect.poll(() => server.observed.received).toBe(2);
    expect(isDrained).toBe(false);
    chat.end();
    const { code, answers } = await outcome;
    expect({ code, answers: answers.map(String) }).toEqual({ code: CODE.ok, answers: ['before', 'during'] });
    await drained;
  });

  test('loses no call of a client that goes on calling', async () => {
    const outcomes: Promise<{ readonly code: number }>[] = [];
    for (let sent = 0; sent < 50; sent++) outcomes.push(client.echo(Buffer.alloc(1_000)));
    await outcomes[0];
    const drained = server.drain();
    for (let sent = 0; sent < 50; sent++) outcomes.push(client.echo(Buffer.alloc(1_000)));
    // Those that the server has not taken may be sent again elsewhere: they are UNAVAILABLE, never lost half-way.
    const codes = (await Promise.all(outcomes)).map(({ code }) => code);
    expect(codes.slice(0, 50).every((code) => code === CODE.ok)).toBe(true);
    expect(codes.every((code) => code === CODE.ok || code === CODE.unavailable)).toBe(true);
    await drained;
  });

  test('sends GOAWAY and closes idle connections', async () => {
    const raw = await RawClient.connect(server.port);
    raw.send(unaryCall(1, ECHO, 'x'));
    await raw.answer(1);
    const drained = server.drain();
    const asked = raw.until(({ type, flags }) => type === FRAME.ping && flags === 0);
    asked.then(
      ({ payload }) => raw.send(frame(FRAME.ping, FLAG.ack, 0, payload)),
      () => undefined, // grpc-js sends no PING
    );
    await raw.closed();
    expect(goaways(raw).at(-1)).toEqual({ last: 1, code: ERROR.noError });
    await drained;
  });
});

describe('GrpcServer', () => {
  test('announces a drain, serves what was on its way, and refuses what comes behind the answered PING', async () => {
    const server = await startOwnServer();
    const raw = await RawClient.connect(server.port);
    raw.send(openCall(1, CHAT));
    await raw.settled('open');
    const drained = server.drain();
    const { payload } = await raw.until(({ type, flags }) => type === FRAME.ping && flags === 0);
    expect(goaways(raw)).toEqual([{ last: 2 ** 31 - 1, code: ERROR.noError }]);
    raw.send(unaryCall(3, ECHO, 'on its way'), frame(FRAME.ping, FLAG.ack, 0, payload));
    expect((await raw.answer(3)).data).toEqual(message('on its way'));
    await raw.until((each) => isGoaway(each) && each.payload.readUInt32BE(0) === 3);
    raw.send(unaryCall(5, ECHO, 'too late'), data(1, message('still here')));
    await raw.until(({ type, stream }) => type === FRAME.data && stream === 1);
    expect(raw.frames.filter(({ stream, type }) => stream === 5 && type === FRAME.headers)).toEqual([]);
    raw.send(data(1, Buffer.alloc(0), FLAG.endStream));
    await raw.answer(1);
    await raw.closed();
    await drained;
    await server.stop();
  });

  test('ends a connection that pings too often', async () => {
    const server = await startOwnServer();
    const raw = await RawClient.connect(server.port);
    for (let sent = 0; sent < 10; sent++) raw.send(ping());
    await raw.closed();
    expect(goaways(raw).at(-1)).toMatchObject({ code: ERROR.enhanceYourCalm });
    expect(raw.frames.find(isGoaway)?.payload.subarray(8).toString()).toBe('too_many_pings');
    expect(server.refused).toEqual(['pingStrikesMax']);
    await server.stop();
  });

  test('takes as many pings as it answers calls', async () => {
    const server = await startOwnServer();
    const raw = await RawClient.connect(server.port);
    for (let sent = 0; sent < 100; sent++) {
      raw.send(unaryCall(2 * sent + 1, ECHO, 'x'));
      await raw.answer(2 * sent + 1);
      expect(await raw.settled(`ping ${sent}`)).toBe(true);
    }
    raw.close();
    await server.stop();
  });
});
