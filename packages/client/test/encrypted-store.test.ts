/** A store whose values are encrypted, over the stores of Node. */
import { join } from 'node:path';
import { noblePrimitives } from '@posthouse/protocol/crypto';
import { nodePrimitives } from '@posthouse/protocol/node';
import { afterAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../relay/test/support/folder.ts';
import { MemoryStore, type Store } from '../src/index.ts';
import { SqliteStore } from '../src/node.ts';
import { encryptedStore } from '../src/store/encrypted.ts';
import { relayWithClients, texts } from './support/relay-with-clients.ts';
import { storeContract } from './support/store-contract.ts';

const world = relayWithClients();
const key = new Uint8Array(32).fill(7);
const options = { key, primitives: nodePrimitives };

storeContract('an encrypted store in memory', () => encryptedStore(new MemoryStore(), options));
const files = temporaryFolder();
afterAll(() => files[Symbol.dispose]());
let opened = 0;
storeContract('an encrypted SQLite file', () => {
  opened += 1;
  return encryptedStore(SqliteStore.open(join(files.path, `${opened}.sqlite`)), options);
});

/** A store that is not closed with its wrapper. */
async function withRows(rows: readonly (readonly [string, string, string])[]) {
  const inner = new MemoryStore();
  const store = await encryptedStore(inner, options);
  await store.write(async (tx) => {
    for (const [collection, row, text] of rows) await tx.put(collection, row, text);
  });
  return { inner, store };
}
const raw = (store: Store, collection: string, row: string) =>
  store.read((tx) => tx.get(collection, row));

describe('encryptedStore', () => {
  test('an account is used from an encrypted file, whose bytes show no key and no text', async () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/store.sqlite`;
    const open = () => encryptedStore(SqliteStore.open(path), options);
    const store = await open();
    const ann = await world.person({ store });
    await ann.messages.send(ann.id, { text: 'nothing for others' });
    await ann.sync();
    await store[Symbol.asyncDispose]();

    await using file = SqliteStore.open(path);
    const values = await file.read(async (tx) => [
      ...(await tx.list('device-keys')),
      ...(await tx.list('account-keys')),
      ...(await tx.list('messages')),
    ]);
    expect(values.length).toBeGreaterThan(2);
    for (const [, text] of values) expect(text).toMatch(/^[\w-]{38,}$/);
    await using again = await open();
    const client = await world.client({ store: again });
    expect(await texts(await client.account())).toEqual(['nothing for others']);
  });

  test('other primitives open what was sealed; equal values look different', async () => {
    const { inner } = await withRows([
      ['a', '1', 'same'],
      ['a', '2', 'same'],
    ]);
    const again = await encryptedStore(inner, { key, primitives: noblePrimitives });
    expect(await again.read((tx) => tx.list('a'))).toEqual([
      ['1', 'same'],
      ['2', 'same'],
    ]);
    const first = await raw(inner, 'a', '1');
    expect(first?.slice(0, 16)).not.toBe((await raw(inner, 'a', '2'))?.slice(0, 16));
    await again.write((tx) => tx.put('a', '1', 'same'));
    expect(await raw(inner, 'a', '1')).not.toBe(first);
  });

  test('another key, and a store that is not encrypted, are refused and left as they are', async () => {
    const { inner, store } = await withRows([['a', '1', 'text']]);
    const other = { ...options, key: new Uint8Array(32).fill(8) };
    await expect(encryptedStore(inner, other)).rejects.toMatchObject({ code: 'store_mismatch' });
    expect(await raw(store, 'a', '1')).toBe('text');
    const plain = new MemoryStore();
    await world.client({ store: plain });
    await expect(encryptedStore(plain, options)).rejects.toMatchObject({ code: 'store_mismatch' });
    expect(await raw(plain, 'encryption', 'probe')).toBeUndefined();
    for (const length of [0, 31, 33]) {
      const wrong = { ...options, key: new Uint8Array(length) };
      await expect(encryptedStore(plain, wrong)).rejects.toMatchObject({ code: 'invalid_input' });
    }
  });

  test('a value that was altered, or is of another row, is an error that names the row', async () => {
    const { inner, store } = await withRows([
      ['a', '1', 'text'],
      ['a', '2', 'text'],
      ['b', '1', 'x'],
    ]);
    const sealed = (await raw(inner, 'a', '1')) as string;
    const foreign = (await raw(inner, 'b', '1')) as string;
    const second = (await raw(inner, 'a', '2')) as string;
    const flipped = sealed.replace(/.$/, (last) => (last === 'A' ? 'Q' : 'A'));
    for (const wrong of [flipped, second, foreign, sealed.slice(4), '', 'text', '"text"']) {
      await inner.write((tx) => tx.put('a', '1', wrong));
      const reading = raw(store, 'a', '1');
      await expect(reading).rejects.toMatchObject({ code: 'store_damaged' });
      await expect(reading).rejects.toThrow('a/1');
      await expect(store.read((tx) => tx.list('a'))).rejects.toThrow('a/1');
    }
  });
});
