/** Calls that the account key signs, through a client in a worker: the page hands the key over for one call. */
import { nodeRandom } from '@posthouse/protocol/node';
import { afterEach, expect, test, vi } from 'vitest';
import { Devices } from '../src/api/devices.ts';
import { Client } from '../src/client.ts';
import { MemoryStore } from '../src/store/memory.ts';
import { clientInWorker } from '../src/web/index.ts';
import { IndexedDbStore } from '../src/web/indexed-db-store.ts';
import type { WorkerPort } from '../src/web/worker/messages.ts';
import { serveClient } from '../src/web/worker/serve-client.ts';
import { network, relayWithClients } from './support/relay-with-clients.ts';

const world = relayWithClients();
const { context } = network;
const options = { context, registry: { context, relays: [] } };

const cleanUp: (() => void)[] = [];
afterEach(() => {
  for (const end of cleanUp.splice(0)) end();
  vi.restoreAllMocks();
});

/** A client in a worker that reaches the relay, and what the page posted to it. */
async function inWorker() {
  const store = new MemoryStore();
  const inner = await world.client({ store });
  vi.spyOn(Client, 'open').mockResolvedValueOnce(inner);
  vi.spyOn(IndexedDbStore, 'open').mockResolvedValue(
    Object.assign(new MemoryStore(), {
      [Symbol.asyncDispose]: async () => undefined,
    }) as unknown as IndexedDbStore,
  );
  const { port1, port2 } = new MessageChannel();
  cleanUp.push(() => port1.close());
  const posting = vi.spyOn(port1, 'postMessage');
  serveClient(port2 as unknown as WorkerPort);
  const client = await clientInWorker(port1 as unknown as WorkerPort, options);
  /** Lengths of what was moved to the worker: 0 once the page has it no more. */
  const moved = () =>
    posting.mock.calls.flatMap(([, transfer]) =>
      ((transfer ?? []) as ArrayBuffer[]).map(({ byteLength }) => byteLength),
    );
  return { client, store, moved };
}

test('every call with the account key works from a page, and the key is not kept', async () => {
  const accountKey = nodeRandom(32);
  const { client, store, moved } = await inWorker();
  const account = await client.setUp({ accountKey });
  expect(await client.accountKey()).toBeUndefined();
  expect(moved()).toEqual([0]);

  const tablet = await world.client();
  const request = await tablet.requestDevice(account.publicKey);
  await expect(account.devices.approve(request)).rejects.toMatchObject({
    code: 'account_key_required',
  });
  const approval = await account.devices.approve(request, { accountKey });
  await tablet.completeDevice(approval, { accountPublicKey: account.publicKey });

  const { signal } = new AbortController();
  await account.devices.renew({ accountKey, signal });
  const other = (await account.devices.list()).find(({ isThisDevice }) => !isThisDevice)!;
  await account.devices.remove(other.deviceId, { accountKey, force: true });
  expect(await account.devices.list()).toMatchObject([{ isThisDevice: true }]);
  const here = await account.home.relayId();
  await expect(account.home.move(here, { accountKey })).rejects.toMatchObject({
    code: 'invalid_input',
  });
  // The page's own bytes stay the page's; what was posted has left it.
  expect(accountKey.some((byte) => byte !== 0)).toBe(true);
  expect(moved()).toEqual([0, 0, 0, 0, 0]);
  expect(await store.read((tx) => tx.list('account-keys'))).toEqual([]);
});

test('the worker overwrites a key that was handed over, also after a failure', async () => {
  const { client } = await inWorker();
  const account = await client.setUp();
  const seen: Uint8Array[] = [];
  const approve = Devices.prototype.approve;
  vi.spyOn(Devices.prototype, 'approve').mockImplementation(function (this: Devices, ...args) {
    seen.push(args[1]?.accountKey as Uint8Array);
    return approve.apply(this, args);
  });
  const request = await (await world.client()).requestDevice(account.publicKey);
  const accountKey = (await client.accountKey())!;
  await account.devices.approve(request, { accountKey });
  const wrong = account.devices.approve(request, { accountKey: nodeRandom(32) });
  await expect(wrong).rejects.toMatchObject({ code: 'verification_failed' });
  expect(seen.map((key) => [key.length, Math.max(...key)])).toEqual([
    [32, 0],
    [32, 0],
  ]);
});

test.each([
  ['too short', new Uint8Array(31)],
  ['zero', new Uint8Array(32)],
  ['above the order', new Uint8Array(32).fill(255)],
])('bytes that are no key (%s) are refused as such', async (_, accountKey) => {
  const { client } = await inWorker();
  const refused = { code: 'invalid_input', message: expect.stringContaining('32 bytes') as string };
  await expect(client.setUp({ accountKey })).rejects.toMatchObject(refused);
  const account = await client.setUp();
  await expect(account.devices.renew({ accountKey })).rejects.toMatchObject(refused);
});
