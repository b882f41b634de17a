/** Calls while a disk has less room than `limits.diskFree`. */
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { RelayLimits } from '../../src/limits.ts';
import { engine } from '../support/engine.ts';
import { temporaryFolder } from '../support/folder.ts';
import { codeOf } from '../support/http.ts';
import { patience } from '../support/patience.ts';
import { ServedRelay } from '../support/served-relay.ts';

/** More than any disk has. */
const everything = Number.MAX_SAFE_INTEGER;

let parts: AsyncDisposableStack;
let relay: ServedRelay;
const lines: { msg: string; level: number }[] = [];
beforeEach(async () => {
  parts = new AsyncDisposableStack();
  lines.length = 0;
  const folder = join(parts.use(temporaryFolder()).path, 'blobs');
  relay = new ServedRelay({ operations: { listen: '127.0.0.1:0' }, blobs: { folder } });
  relay.log = pino({ level: 'info' }, { write: (line) => void lines.push(JSON.parse(line)) });
  parts.use(relay);
  await relay.start();
});
afterEach(() => parts.disposeAsync());

/** Changes the floor, and waits until the relay has looked at its disks. */
async function setFloor(diskFree: number, expected: 'ok' | 'low'): Promise<void> {
  (relay.server.context.limits as { -readonly [K in keyof RelayLimits]: number }).diskFree =
    diskFree;
  await vi.waitFor(async () => {
    relay.clock.advance(2);
    expect((await health()).disk).toBe(expected);
  }, patience);
}

const health = async () =>
  (await (await fetch(`${relay.server.operations}/health`)).json()) as Record<string, unknown>;

async function upload(token: string): Promise<number> {
  const headers = {
    ...{ 'content-type': 'application/octet-stream', 'content-length': '100' },
    'x-svc-session': token,
  };
  const body = Buffer.alloc(100);
  return (await relay.http().send({ verb: 'PUT', path: '/blobs', body, headers })).status;
}

test('02 §4: below the floor writes are refused in a sentence; reads, logins and removals go on', async () => {
  const ann = await relay.register('ann', ['phone', 'laptop']);
  const { token } = await relay.logInDevice(ann);
  expect(await upload(token)).toBe(201);
  await setFloor(everything, 'low');
  expect(await health()).toMatchObject({ status: 'degraded', disk: 'low', storage: 'ok' });
  expect(await upload(token)).toBe(503);

  const publish = () => relay.http().call('profile.publish', ann.profile(), { token });
  const answer = await publish();
  if (engine === 'postgres') {
    // The disk of the server is not this process's.
    expect(codeOf(answer)).toBe('ok');
  } else {
    expect([answer.status, codeOf(answer)]).toEqual([503, 'temporarily_unavailable']);
    expect(JSON.parse(answer.text).message).toBe(
      'the disk of the relay is nearly full: it stores nothing new until there is room',
    );
    // A new account is new rows.
    await expect(relay.register('ben')).rejects.toMatchObject({ code: 'temporarily_unavailable' });
  }
  // The own mistake comes first.
  expect(codeOf(await relay.http().call('profile.publish', {}, { token }))).toBe('bad_request');
  const again = await relay.logInDevice(ann);
  const by = { token: again.token };
  expect(codeOf(await relay.http().call('message.timeline.sync', {}, by))).toBe('ok');
  // A lost device is removed.
  const state = await ann.state({ devices: ['phone'] });
  expect(codeOf(await relay.http().call('device.state.publish', state, by))).toBe('ok');

  await setFloor(1, 'ok');
  expect(await health()).toMatchObject({ status: 'ok', disk: 'ok' });
  expect(codeOf(await publish())).toBe('ok');
  expect(await upload(token)).toBe(201);
  const about = lines.filter(({ msg }) => msg.includes('disk')).map(({ msg }) => msg);
  const disks = engine === 'postgres' ? 1 : 2;
  expect(about).toEqual([
    ...Array(disks).fill(
      'the disk is nearly full: calls that write are refused until there is room',
    ),
    ...Array(disks).fill('the disk has room again'),
  ]);
});

test('uploads that begin at once share the room above the floor', async () => {
  const { disk, metrics } = relay.server.context;
  const free = metrics.value('disk_free_bytes', { part: 'blobs' });
  await setFloor(Math.floor(free / 2), 'ok');
  expect(disk.isLow('blobs', 1_000)).toBe(false);
  expect(disk.isLow('blobs', free)).toBe(true);
});
