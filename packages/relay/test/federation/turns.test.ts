/** What another relay sends takes turns of the event loop that are its own (0019). */
import { hex, utf8 } from '@posthouse/protocol';
import { encodeKadMessage, kadTypes, parsePeerId } from '@posthouse/protocol/federation';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { CallTurns } from '../../src/dispatch/call-turns.ts';
import { LongWork } from '../../src/dispatch/long-work.ts';
import { StepTurns } from '../../src/step-turns.ts';
import { patience, unlimitedHandshakes } from '../support/served-network.ts';
import { servedRelay } from '../support/served-relay.ts';
import { ForeignRelay } from './foreign-relay.ts';

const relay = servedRelay({
  limits: { ...unlimitedHandshakes, federationAddressLookupRate: 1_000 },
});
const account = 'neo:0:NYyxNvpALEX66F1QrykS5ZGktqRMxPb5MT';
const params = { account, device_id: 'dev_VyJyKJVXKGyCX2vsKlsIUw' };
let foreign: ForeignRelay;
beforeEach(async () => {
  foreign = await ForeignRelay.start(relay);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await foreign[Symbol.asyncDispose]();
});

/** Holds all turns of calls until it is released. */
function holdTurns() {
  const owners: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  vi.spyOn(CallTurns.prototype, 'take').mockImplementation((owner) => {
    owners.push(owner);
    return promise;
  });
  return { owners, release: resolve };
}

const question = utf8(
  JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'device.status',
    params,
  }),
);

test('07 §C9: requests of a relay are read in its turns, each in one of its own', async () => {
  const { owners, release } = holdTurns();
  const ask = async () => {
    const stream = await foreign.openRpc();
    await stream.writeFrame(question);
    stream.end();
    return await stream.readFrame();
  };
  let answered = 0;
  const answers = [ask(), ask(), ask()].map((one) =>
    one.then((frame) => {
      answered += 1;
      return frame;
    }),
  );
  const owner = `relay ${foreign.relayId}`;
  await vi.waitFor(() => expect(owners).toEqual([owner, owner, owner]), patience);
  expect(answered).toBe(0);
  release();
  expect((await Promise.all(answers)).every((frame) => frame !== undefined)).toBe(true);
});

test('07 §B6: requests of the DHT are decoded in turns of the relay', async () => {
  const { owners, release } = holdTurns();
  const key = new Uint8Array(32).fill(7);
  const asked = foreign.askDht({ type: kadTypes.findNode, key });
  await vi.waitFor(() => expect(owners).toEqual([`relay ${foreign.relayId}`]), patience);
  release();
  expect(await asked).toMatchObject({ type: kadTypes.findNode });
});

test('07 §B6: a message of the DHT with many fields is decoded in steps of the relay', async () => {
  const run = vi.spyOn(LongWork.prototype, 'run');
  const fields = new Uint8Array(60_000).map((_, at) => [0x7a, 0x00][at % 2] ?? 0);
  const known = encodeKadMessage({ type: kadTypes.findNode, key: new Uint8Array(32) });
  expect(await foreign.askDht(Buffer.concat([known, fields]))).toMatchObject({
    type: kadTypes.findNode,
  });
  expect(run.mock.calls.map(([owner]) => owner)).toEqual([`relay ${foreign.relayId}`]);
});

test('07 §C4: answers of a relay are read in its turns', async () => {
  foreign.serveRpc = async (stream) => {
    if ((await stream.readFrame()) === undefined) return;
    await stream.writeFrame(utf8('{'));
  };
  const { owners, release } = holdTurns();
  const asked = relay.server.context.relayClient.call(foreign.relayId, 'device.status', params);
  await vi.waitFor(() => expect(owners).toEqual([`relay ${foreign.relayId}`]), patience);
  release();
  expect(await asked).toMatchObject({ kind: 'invalid' });
});

test('07 §B2, §B3: handshakes take turns of their address, what follows turns of the Peer ID', async () => {
  const run = vi.spyOn(StepTurns.prototype, 'run');
  await foreign.dial();
  const owners = new Set(run.mock.calls.map(([owner]) => owner));
  expect(owners).toContain('127.0.0.1');
  expect(owners).toContain(hex(parsePeerId(foreign.peerId) as Uint8Array));
});
