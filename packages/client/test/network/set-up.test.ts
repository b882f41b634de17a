/** Which set-up keeps an account's devices, and leaving one that was begun (03 §11). */
import { nodeRandom } from '@posthouse/protocol/node';
import { expect, test } from 'vitest';
import {
  type ClientOptions,
  type Clock,
  type HttpRequest,
  type HttpResponse,
  isClientError,
  MemoryStore,
  type NewAccountOptions,
  RelayUnreachable,
  type Transport,
} from '../../src/index.ts';
import { impatient } from '../support/restartable-client.ts';
import { type RelayName, relaysWithClients } from './relays-with-clients.ts';

const world = relaysWithClients();

type Answer = HttpResponse | 'lost' | 'honest';

/** A transport whose requests to each relay a test answers itself, by relay and method. */
class SteeredNetwork implements Transport {
  readonly made: string[] = [];
  readonly #inner = world.transport();
  readonly #answer: (relay: RelayName, method: string) => Answer;

  constructor(answer: (relay: RelayName, method: string) => Answer) {
    this.#answer = answer;
  }

  async request(request: HttpRequest): Promise<HttpResponse> {
    const { origin, pathname } = new URL(request.url);
    const relay = (['a', 'b', 'c'] as const).find((it) => world.endpoint(it).startsWith(origin));
    if (relay === undefined) throw new Error(`no relay at ${origin}`);
    const method = pathname.replace(/^.*\/svc\/v1\//, '').replaceAll('/', '.');
    this.made.push(`${relay} ${method}`);
    const answer = this.#answer(relay, method);
    if (answer === 'lost') throw new RelayUnreachable('lost by the test', { outcomeUnknown: true });
    return answer === 'honest' ? await this.#inner.request(request) : answer;
  }
}

const notFound: HttpResponse = {
  status: 404,
  contentType: 'application/json',
  body: new TextEncoder().encode('{"code":"not_found","message":"of the test"}'),
};

/** A client whose calls of `setUp` end in the account's ID or in an error's code and message. */
async function newcomer(answer: (relay: RelayName, method: string) => Answer = () => 'honest') {
  const transport = new SteeredNetwork(answer);
  const options: Partial<ClientOptions> = { transport, ...impatient, prefer: 'http' };
  const client = await world.client({ ...options, store: new MemoryStore() });
  const setUp = async (given: NewAccountOptions) => {
    transport.made.length = 0;
    try {
      return (await client.setUp(given)).id;
    } catch (error) {
      if (!isClientError(error)) throw error;
      return { code: error.code, message: error.message };
    }
  };
  return { client, transport, setUp };
}

/** An account at home at a relay, and its key. */
async function mia(home: RelayName = 'a') {
  const accountKey = nodeRandom(32);
  const client = await world.client();
  const account = await client.setUp({ accountKey, relayId: world.relayId(home) });
  const isIn = async () => (await account.devices.list()).some((device) => device.isThisDevice);
  return { accountKey, account, isIn };
}

const unknown = {
  code: 'no_relay',
  message: expect.stringMatching(/^1 of 3 relays know no account of this key.*recover/) as string,
};

test('03 §11.2: one relay that knows no route, the others away, ends no device', async () => {
  const { accountKey, account, isIn } = await mia();
  const relayId = world.relayId('b');
  let lies = Number.POSITIVE_INFINITY;
  let away = true;
  const { setUp } = await newcomer((relay, method) => {
    if (relay !== 'b') return away ? 'lost' : 'honest';
    if (method !== 'account.route.resolve' || lies === 0) return 'honest';
    lies -= 1;
    return notFound;
  });
  expect(await setUp({ accountKey, relayId })).toEqual(unknown);
  expect(await isIn()).toBe(true);
  // With the home relay back, the lie is found out: another device of the account.
  away = false;
  expect(await setUp({ accountKey, relayId })).toBe(account.id);
  expect(await account.devices.list()).toHaveLength(2);
});

test('03 §11.2: all relays deny the route once, and the home has the devices: a device joins', async () => {
  const { accountKey, account } = await mia();
  const denied = new Set<RelayName>();
  const { setUp, transport } = await newcomer((relay, method) => {
    if (method !== 'account.route.resolve' || denied.has(relay)) return 'honest';
    denied.add(relay);
    return notFound;
  });
  expect(await setUp({ accountKey, relayId: world.relayId('a') })).toBe(account.id);
  expect(await account.devices.list()).toHaveLength(2);
  expect(transport.made.filter((it) => it.endsWith('route.publish'))).toEqual([]);
});

test('03 §11.2: a relay that knows another home tells so before anything is published', async () => {
  const { accountKey, account, isIn } = await mia();
  const { setUp, transport } = await newcomer((_, method) =>
    method === 'account.route.resolve' ? notFound : 'honest',
  );
  expect(await setUp({ accountKey, relayId: world.relayId('b') })).toEqual({
    code: 'no_relay',
    message: expect.stringMatching(
      /^no relay tells where the account is.*try again.*recover/,
    ) as string,
  });
  expect(transport.made.filter((it) => it.endsWith('publish'))).toEqual([]);
  expect(await isIn()).toBe(true);
  expect(await account.devices.list()).toHaveLength(1);
});

test('03 §11.1: a key that no relay knows makes an account, one relay being away', async () => {
  const { setUp } = await newcomer((relay) => (relay === 'c' ? 'lost' : 'honest'));
  const accountKey = nodeRandom(32);
  expect(await setUp({ accountKey, relayId: world.relayId('b') })).toMatch(/^neo:/);
});

test('03 §11.3: a join at a home that is gone can become a recovery elsewhere', async () => {
  const { accountKey, account } = await mia();
  const { client, setUp, transport } = await newcomer((relay, method) =>
    relay === 'a' && method.startsWith('auth') ? 'lost' : 'honest',
  );
  expect(await setUp({ accountKey })).toMatchObject({ code: 'relay_unreachable' });
  const relayId = world.relayId('b');
  expect(await setUp({ accountKey, recover: true, relayId })).toBe(account.id);
  expect(transport.made.filter((it) => it.startsWith('a'))).toEqual([]);
  const found = await client.account();
  expect(await found.status()).toMatchObject({ homeRelay: relayId });
  expect(await found.devices.list()).toMatchObject([{ isThisDevice: true }]);
});

test('03 §11.3: a recovery that failed is no reason to replace devices in the next call', async () => {
  const { accountKey, account } = await mia();
  let away = true;
  const { setUp } = await newcomer((relay) => (relay === 'b' && away ? 'lost' : 'honest'));
  const relayId = world.relayId('b');
  expect(await setUp({ accountKey, recover: true, relayId })).toMatchObject({
    code: 'relay_unreachable',
  });
  away = false;
  expect(await setUp({ accountKey, relayId })).toBe(account.id);
  expect(await account.devices.list()).toHaveLength(2);
});

test.each(['auth.challenge', 'account.route.publish'])(
  '03 §11.3: a recovery that was begun, and lost its request (%s), is no reason either',
  async (lost) => {
    const { accountKey, account } = await mia();
    let away = true;
    const { client, setUp } = await newcomer((relay, method) =>
      relay === 'b' && away && method === lost ? 'lost' : 'honest',
    );
    const relayId = world.relayId('b');
    expect(await setUp({ accountKey, recover: true, relayId })).toMatchObject({
      code: 'relay_unreachable',
    });
    away = false;
    expect(await setUp({ accountKey, relayId })).toBe(account.id);
    expect(await account.devices.list()).toHaveLength(2);
    expect(await (await client.account()).status()).toMatchObject({
      homeRelay: world.relayId('a'),
    });
  },
);

test('03 §11.3: a recovery at a relay that is not registered stores nothing', async () => {
  const { accountKey, account } = await mia();
  const { client, setUp } = await newcomer();
  const wrong = { accountKey, recover: true, relayId: `0x${'9'.repeat(40)}` };
  expect(await setUp(wrong)).toMatchObject({ code: 'no_relay' });
  const right = { ...wrong, relayId: world.relayId('c') };
  expect(await setUp(right)).toBe(account.id);
  expect(await (await client.account()).devices.list()).toHaveLength(1);
});

test('03 §11.3: a device that joins after a recovery whose answer was lost stays', async () => {
  const { accountKey, account } = await mia();
  let isLost = true;
  const inner = world.transport();
  const transport: Transport = {
    request: async (request) => {
      const answer = await inner.request(request);
      // Of a route that is in force: one that is refused is published again with a higher revision.
      if (isLost && request.url.endsWith('account/route/publish') && answer.status === 200) {
        throw new RelayUnreachable('lost by the test', { outcomeUnknown: true });
      }
      return answer;
    },
  };
  const client = await world.client({ transport, ...impatient, prefer: 'http' });
  const recovery = { accountKey, recover: true, relayId: world.relayId('b') };
  await expect(client.setUp(recovery)).rejects.toMatchObject({
    code: 'relay_unreachable',
    message: expect.stringContaining(`goes on at ${recovery.relayId}`) as string,
  });
  // Asked first: the others may not know yet that this is the home.
  const tablet = await (await world.client()).setUp({ accountKey, relayId: recovery.relayId });
  expect(tablet.id).toBe(account.id);
  isLost = false;
  const found = await client.setUp(recovery);
  const devices = (await found.devices.list()).map(({ deviceId }) => deviceId);
  expect(devices.sort()).toEqual([found.deviceId, tablet.deviceId].sort());
});

test('03 §11.3: a recovery takes effect although this clock is slow', async () => {
  const { accountKey, account } = await mia();
  const clock: Clock = {
    milliseconds: () => world.clock.milliseconds() - 30_000,
    sleep: (milliseconds, signal) => world.clock.sleep(milliseconds, signal),
  };
  const client = await world.client({ clock });
  const found = await client.setUp({ accountKey, recover: true, relayId: world.relayId('a') });
  expect(found.id).toBe(account.id);
  expect(await found.devices.list()).toHaveLength(1);
});

test('03 §11.1: a new account leaves a relay that died after it was found', async () => {
  const dead = new Set<RelayName>(['b']);
  const { setUp, transport } = await newcomer((relay, method) =>
    dead.has(relay) && method.startsWith('auth') ? 'lost' : 'honest',
  );
  const away = { code: 'relay_unreachable' };
  expect(await setUp({ relayId: world.relayId('b') })).toMatchObject(away);
  // Also if the relay was chosen by chance: the next call is free to choose again.
  for (const relay of ['a', 'c'] as const) dead.add(relay);
  expect(await setUp({})).toMatchObject(away);
  dead.delete('c');
  expect(await setUp({ relayId: world.relayId('c') })).toMatch(/^neo:/);
  expect(transport.made.some((it) => it === 'c account.route.publish')).toBe(true);
});

test('03 §11.1: after a relay failed, the next call may choose another one by itself', async () => {
  const { setUp } = await newcomer((relay, method) =>
    relay === 'b' && method.startsWith('auth') ? 'lost' : 'honest',
  );
  const away = { code: 'relay_unreachable' };
  expect(await setUp({ relayId: world.relayId('b') })).toMatchObject(away);
  let found: unknown = away;
  // By chance it may be the same one again.
  for (let call = 0; call < 40 && typeof found !== 'string'; call += 1) found = await setUp({});
  expect(found).toMatch(/^neo:/);
});

/** Loses the answers to a method while the test says so. */
function losing(method: string) {
  const inner = world.transport();
  const state = { isLost: true };
  const transport: Transport = {
    request: async (request) => {
      const answer = await inner.request(request);
      if (state.isLost && request.url.endsWith(method)) {
        throw new RelayUnreachable('lost by the test', { outcomeUnknown: true });
      }
      return answer;
    },
  };
  return { state, transport };
}

test('03 §11.3: a recovery after a join whose answer was lost removes the other devices', async () => {
  const { accountKey, account, isIn } = await mia();
  const { state, transport } = losing('device/state/publish');
  const client = await world.client({ transport, ...impatient, prefer: 'http' });
  const relayId = world.relayId('a');
  await expect(client.setUp({ accountKey, relayId })).rejects.toMatchObject({
    code: 'relay_unreachable',
    message: expect.stringMatching(/goes on at 0x.*recover/) as string,
  });
  expect(await account.devices.list()).toHaveLength(2);
  state.isLost = false;
  const found = await client.setUp({ accountKey, relayId, recover: true });
  expect(found.id).toBe(account.id);
  expect(await found.devices.list()).toMatchObject([{ deviceId: found.deviceId }]);
  expect(await isIn().catch(() => false)).toBe(false);
});

test('03 §11.1: a key that the app has just made needs one relay that answers, if the app says so', async () => {
  const { setUp } = await newcomer((relay) => (relay === 'b' ? 'honest' : 'lost'));
  const accountKey = nodeRandom(32);
  const relayId = world.relayId('b');
  expect(await setUp({ accountKey, relayId })).toEqual(unknown);
  expect(await setUp({ accountKey, relayId, isNewKey: true })).toMatch(/^neo:/);
});

test('03 §11.2: a key that is said to be new, and has an account, ends no device of it', async () => {
  const { accountKey, account } = await mia();
  const { setUp } = await newcomer((relay) => (relay === 'c' ? 'lost' : 'honest'));
  const relayId = world.relayId('b');
  expect(await setUp({ accountKey, relayId, isNewKey: true })).toBe(account.id);
  expect(await account.devices.list()).toHaveLength(2);
});
