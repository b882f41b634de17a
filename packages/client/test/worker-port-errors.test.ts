/** What fails between a page and its client in a worker (decision 0035): each failure ends its own call. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Account } from '../src/account.ts';
import { Client } from '../src/client.ts';
import { ClientError, RelayUnreachable } from '../src/errors.ts';
import { MemoryStore } from '../src/store/memory.ts';
import { clientInWorker } from '../src/web/index.ts';
import { IndexedDbStore } from '../src/web/indexed-db-store.ts';
import type { Reply, WorkerPort } from '../src/web/worker/messages.ts';
import { serveClient } from '../src/web/worker/serve-client.ts';
import { network } from './support/relay-with-clients.ts';

const { context } = network;
const options = { context, registry: { context, relays: [] } };

let channel: MessageChannel;
let page: WorkerPort;
/** Fails the closing of the worker's store. */
let closing: Error | undefined;
/** What the worker's account does; the members that a test needs. */
let worker: Record<string, unknown>;
beforeEach(() => {
  channel = new MessageChannel();
  page = channel.port1 as unknown as WorkerPort;
  closing = undefined;
  worker = { id: 'a', deviceId: 'd', publicKey: 'p' };
  vi.spyOn(IndexedDbStore, 'open').mockImplementation(async () => {
    const store = new MemoryStore();
    return Object.assign(store, {
      [Symbol.asyncDispose]: async () => {
        if (closing !== undefined) throw closing;
      },
    }) as unknown as IndexedDbStore;
  });
  vi.spyOn(Client.prototype, 'account').mockImplementation(async () =>
    Object.assign(Object.create(Account.prototype), worker),
  );
  serveClient(channel.port2 as unknown as WorkerPort);
});
afterEach(() => {
  channel.port1.close();
  vi.restoreAllMocks();
});

/** A part of the account, whose class has these methods. */
function part(methods: Record<string, (...args: never[]) => unknown>): object {
  class Part {}
  return Object.assign(Object.create(Object.assign(Part.prototype, methods)), { field: () => 1 });
}

async function open() {
  const client = await clientInWorker(page, options);
  return { client, account: await client.account() };
}

/** The worker's reply to a message that no page of ours posts. */
function replyTo(request: { readonly id: number }): Promise<Reply> {
  return new Promise((resolve) => {
    const listener = ({ data }: { readonly data: unknown }) => {
      if ((data as Reply).id === request.id) resolve(data as Reply);
    };
    page.addEventListener('message', listener);
    page.postMessage(request);
  });
}

test('an argument that cannot be posted fails its call, and no other', async () => {
  worker.groups = part({ list: async () => ['group'] });
  const { account } = await open();
  const list = account.groups.list as (...args: unknown[]) => Promise<unknown>;
  await expect(list(() => 1)).rejects.toMatchObject({ code: 'invalid_input' });
  expect(await list()).toEqual(['group']);
});

test('a result that cannot be posted fails its call, and no other', async () => {
  worker.groups = part({ list: async () => ['group'], get: async () => ({ close() {} }) });
  const { account } = await open();
  await expect(account.groups.get('x')).rejects.toMatchObject({ name: 'DataCloneError' });
  expect(await account.groups.list()).toEqual(['group']);
});

test.each([
  ['a ClientError', new ClientError('not_a_member', 'no member'), { code: 'not_a_member' }],
  [
    'what is stored and sent later',
    Object.assign(new RelayUnreachable('gone', { outcomeUnknown: true }), { kept: true }),
    { code: 'relay_unreachable', kept: true, outcomeUnknown: true },
  ],
  [
    'a fault, without the files of the worker',
    new RangeError('too far'),
    { name: 'RangeError', message: 'too far' },
  ],
  [
    'an error with a code',
    Object.assign(new Error('x'), { code: 'bad_request' }),
    { code: 'bad_request' },
  ],
  ['a text', 'just a text', { name: 'Error', message: 'just a text' }],
  ['nothing', undefined, { name: 'Error', message: 'undefined' }],
])('a worker that throws %s rejects the call with an Error', async (_, thrown, expected) => {
  worker.groups = part({ list: () => Promise.reject(thrown) });
  const { account } = await open();
  const failure = await account.groups.list().catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(Error);
  expect(failure).toMatchObject(expected);
  expect((failure as Error).stack).not.toContain('part(');
});

test.each([...['constructor', 'toString', '__proto__', 'hasOwnProperty', 'none', 'field']])(
  '%s is no method that a page can call',
  async (name) => {
    worker.groups = part({ list: async () => [] });
    const { account } = await open();
    const groups = account.groups as unknown as Record<string, () => Promise<unknown>>;
    await expect(groups[name]?.()).rejects.toMatchObject({ code: 'invalid_input' });
  },
);

test('parts that the account does not have, and methods before an account is open, are refused', async () => {
  const client = await clientInWorker(page, options);
  for (const path of [[], ['status'], ['groups', 'list'], ['close', 'list'], ['sync', 'call']]) {
    const reply = await replyTo({ kind: 'call', id: 1, path, args: [] } as never);
    expect(reply).toMatchObject({ error: { code: 'invalid_input' } });
  }
  await client.close();
});

test('a stream that is not there has ended; one that fails rejects its reader and is left', async () => {
  let left = 0;
  worker.follow = async function* () {
    try {
      yield { kind: 'events-missed' };
      throw new ClientError('store_full', 'no space');
    } finally {
      left += 1;
    }
  };
  const { account } = await open();
  expect(await replyTo({ kind: 'next', id: 7 } as never)).toEqual({ id: 7, done: true });
  const events = account.follow();
  expect(await events.next()).toMatchObject({ value: { kind: 'events-missed' } });
  await expect(events.next()).rejects.toMatchObject({ code: 'store_full' });
  expect(await events.next()).toEqual({ done: true, value: undefined });
  expect(left).toBe(1);
});

test('a stream that a page leaves is left at the worker, without another event', async () => {
  const left = Promise.withResolvers<void>();
  let yielded = 0;
  worker.follow = async function* () {
    try {
      for (;;) {
        yielded += 1;
        yield { kind: 'events-missed' };
      }
    } finally {
      left.resolve();
    }
  };
  const { account } = await open();
  for await (const event of account.follow()) if (event.kind === 'events-missed') break;
  await left.promise;
  expect(yielded).toBe(1);
});

test('a stream is aborted with the reason of the page, and left at the worker', async () => {
  const left = Promise.withResolvers<void>();
  worker.follow = async function* ({ signal }: { readonly signal: AbortSignal }) {
    try {
      await new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
      yield;
    } finally {
      left.resolve();
    }
  };
  const { account } = await open();
  const stop = new AbortController();
  const next = account.follow({ signal: stop.signal }).next();
  const reason = new Error('enough');
  stop.abort(reason);
  await expect(next).rejects.toBe(reason);
  await left.promise;
});

test('a store that cannot be closed is told, and the client is over all the same', async () => {
  const { client, account } = await open();
  closing = new ClientError('store_unavailable', 'the store was deleted');
  await expect(client.close()).rejects.toThrow('the store was deleted');
  await expect(account.status()).rejects.toThrow('the client was closed');
  closing = undefined;
  // The worker is free for another one.
  await (await clientInWorker(page, options)).close();
});

test('replies of no call, and messages that are no reply, change nothing', async () => {
  worker.groups = part({ list: async () => ['group'] });
  const { account } = await open();
  for (const stray of [null, { id: -1, value: 1 }, { id: 0, error: { name: 'x' } }, {}]) {
    channel.port2.postMessage(stray);
  }
  expect(await account.groups.list()).toEqual(['group']);
});
