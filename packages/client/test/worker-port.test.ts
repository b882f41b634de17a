/** The two ends of a client in a worker, over a channel in one process: what no browser is needed for. */
import { afterEach, expect, test, vi } from 'vitest';
import { Account } from '../src/account.ts';
import { Client } from '../src/client.ts';
import { MemoryStore } from '../src/store/memory.ts';
import { clientInWorker } from '../src/web/index.ts';
import { IndexedDbStore } from '../src/web/indexed-db-store.ts';
import type { WorkerPort } from '../src/web/worker/messages.ts';
import { serveClient } from '../src/web/worker/serve-client.ts';
import { network } from './support/relay-with-clients.ts';

const { context } = network;
const options = { context, registry: { context, relays: [] } };

const cleanUp: (() => void)[] = [];
afterEach(() => {
  for (const end of cleanUp.splice(0)) end();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** Both ends of a channel: that of the page, and that of the worker. */
function channel() {
  const { port1, port2 } = new MessageChannel();
  cleanUp.push(() => port1.close());
  return { port1, page: port1 as unknown as WorkerPort, worker: port2 as unknown as WorkerPort };
}

/** Counts the stores that the worker opens and closes. */
function stores() {
  const count = { opened: 0, closed: 0 };
  vi.spyOn(IndexedDbStore, 'open').mockImplementation(async () => {
    count.opened += 1;
    const store = new MemoryStore();
    return Object.assign(store, {
      [Symbol.asyncDispose]: async () => {
        count.closed += 1;
      },
    }) as unknown as IndexedDbStore;
  });
  return count;
}

function served(): WorkerPort {
  const { page, worker } = channel();
  serveClient(worker);
  return page;
}

interface Asked {
  readonly kind: string;
  readonly id: number;
  readonly path?: readonly string[];
}

/** A worker that answers by hand; `account` and `open` are answered at once. */
function answering(answer: (asked: Asked, reply: (rest: object) => void) => void) {
  const { port1, page, worker } = channel();
  worker.addEventListener('message', ({ data }) => {
    const asked = data as Asked;
    const reply = (rest: object) => worker.postMessage({ id: asked.id, ...rest });
    if (asked.kind === 'open') reply({ value: undefined });
    else if (asked.path?.[0] === 'account')
      reply({ value: { accountInWorker: true, id: 'a', deviceId: 'd', publicKey: 'p' } });
    else answer(asked, reply);
  });
  worker.start?.();
  return { port1, page };
}

test('the entry serves in a dedicated worker only (decision 0035)', async () => {
  const listening: string[] = [];
  vi.stubGlobal('addEventListener', (type: string) => listening.push(type));
  vi.stubGlobal('postMessage', () => undefined);
  await import('../src/web/worker/entry.ts');
  expect(listening).toEqual([]);

  vi.resetModules();
  vi.stubGlobal('DedicatedWorkerGlobalScope', {
    [Symbol.hasInstance]: (value: unknown) => value === globalThis,
  });
  await import('../src/web/worker/entry.ts');
  expect(listening).toEqual(['message']);
});

test('a worker ignores what is no request, and opens one client (decision 0035)', async () => {
  const count = stores();
  const page = served();
  for (const stray of [null, 'hello', { id: 1 }, { kind: 'else', id: 2, options }])
    page.postMessage(stray);
  const [first, second] = await Promise.allSettled([
    clientInWorker(page, options),
    clientInWorker(page, options),
  ]);
  expect(first).toMatchObject({ status: 'fulfilled' });
  expect(second).toMatchObject({ status: 'rejected', reason: { code: 'invalid_input' } });
  expect(count).toEqual({ opened: 1, closed: 0 });
});

test('a store is closed if its client cannot be opened, and with it (decision 0035)', async () => {
  const count = stores();
  const page = served();
  const wrong = { context, registry: { nodes: 'none' } };
  await expect(clientInWorker(page, wrong)).rejects.toThrow();
  expect(count).toEqual({ opened: 1, closed: 1 });
  for (const closed of [2, 3]) {
    const client = await clientInWorker(page, options);
    await expect(client.account()).rejects.toMatchObject({ code: 'not_set_up' });
    await Promise.all([client.close(), client.close()]);
    expect(count).toEqual({ opened: closed, closed });
    await expect(client.account()).rejects.toMatchObject({ code: 'store_unavailable' });
  }
});

test('two clients of one port settle their own calls only (decision 0035)', async () => {
  const ids: number[] = [];
  const { page } = answering(({ id }, reply) => {
    ids.push(id);
    reply({ value: id });
  });
  const clients = [await clientInWorker(page, options), await clientInWorker(page, options)];
  const answers = await Promise.all(clients.map((client) => client.requestDevice('x')));
  expect(answers).toEqual(ids);
  expect(new Set(ids).size).toBe(2);
});

test.each(['error', 'messageerror'])(
  'after an %s of the worker its calls fail, those that wait and later ones (decision 0035)',
  async (type) => {
    const { page, port1 } = answering(() => undefined);
    const client = await clientInWorker(page, options);
    const account = await client.account();
    const waiting = client.requestDevice('x');
    const events = account.follow();
    const next = events.next();
    port1.dispatchEvent(new Event(type));
    for (const call of [waiting, next, client.account(), account.sync()])
      await expect(call).rejects.toThrow('the worker failed');
    await client.close();
  },
);

test('closing rejects calls that wait and ends streams (decision 0035)', async () => {
  const { page } = answering(({ path }, reply) => {
    if (path?.[0] === 'close') reply({ value: undefined });
  });
  const client = await clientInWorker(page, options);
  const account = await client.account();
  const waiting = expect(account.sync()).rejects.toMatchObject({ code: 'store_unavailable' });
  const next = account.follow().next();
  await client.close();
  await waiting;
  expect(await next).toEqual({ done: true, value: undefined });
});

test('a subscription ends by the signal of its options (decision 0035)', async () => {
  const kinds: string[] = [];
  const left = Promise.withResolvers<void>();
  const { page } = answering(({ kind }, reply) => {
    kinds.push(kind);
    if (kind === 'abort') reply({ done: true });
    if (kind === 'leave') left.resolve();
    if (kind === 'call') reply({ value: { kind: 'events-missed' } });
  });
  const account = await (await clientInWorker(page, options)).account();
  const stop = new AbortController();
  const heard = Promise.withResolvers<void>();
  account.subscribe(() => heard.resolve(), { signal: stop.signal });
  await heard.promise;
  stop.abort();
  await left.promise;
  expect(kinds).toEqual(expect.arrayContaining(['call', 'leave']));
});

test('a signal of setUp stays in the page, and its abort is passed on', async () => {
  const aborted = Promise.withResolvers<void>();
  const { page } = answering(({ kind }) => {
    if (kind === 'abort') aborted.resolve();
  });
  const client = await clientInWorker(page, options);
  const stop = new AbortController();
  void client.setUp({ signal: stop.signal }).catch(() => undefined);
  stop.abort();
  await aborted.promise;
});

test('a state that ended is read again by the next listener (decision 0035)', async () => {
  let asked = 0;
  const { page } = answering(({ path }, reply) => {
    if (path?.[0] !== 'snapshots') return;
    asked += 1;
    if (asked === 1) reply({ error: { name: 'Error', message: 'failed' } });
    else reply({ value: { status: { outbox: asked }, connection: undefined } });
  });
  const { state } = await (await clientInWorker(page, options)).account();
  state.subscribe(() => undefined);
  await vi.waitFor(() => expect(asked).toBe(1));
  await vi.waitFor(() => {
    state.subscribe(() => undefined);
    expect(state.getSnapshot()).toMatchObject({ status: { outbox: 2 } });
  });
});

test('a second reader of the state gets a snapshot though nothing changes (decision 0035)', async () => {
  stores();
  const snapshot = { status: { outbox: 1 }, connection: undefined };
  const state = { subscribe: () => () => undefined, getSnapshot: () => snapshot };
  const account = Object.assign(Object.create(Account.prototype), {
    ...{ id: 'a', deviceId: 'd', publicKey: 'p', state },
  });
  vi.spyOn(Client.prototype, 'account').mockResolvedValue(account);
  const client = await clientInWorker(served(), options);
  const views = [await client.account(), await client.account()];
  for (const view of views) view.state.subscribe(() => undefined);
  for (const view of views) {
    await vi.waitFor(() => expect(view.state.getSnapshot()).toEqual(snapshot));
  }
  await client.close();
});
