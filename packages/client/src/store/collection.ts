import { limits } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import { ClientError } from '../errors.ts';
import type { StoreRange, StoreReader, StoreWriter } from './types.ts';

/** Rows contain protocol objects of full depth in their members. */
const recordDepth = limits.jsonDepth + 8;

/** Parses strictly, unlike `JSON.parse`: stored objects are hashed and verified again. */
function parseRecord<V>(text: string): V {
  try {
    return parseJson(text, recordDepth) as V;
  } catch (cause) {
    throw new ClientError(
      'store_damaged',
      'a row of the store is damaged: restore the store, or add this device again',
      { cause },
    );
  }
}

/** Typed access to one collection of a store; values are JSON. */
export class Collection<V> {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  async get(tx: StoreReader, key: string): Promise<V | undefined> {
    const text = await tx.get(this.name, key);
    return text === undefined ? undefined : parseRecord<V>(text);
  }

  async list(
    tx: StoreReader,
    range?: StoreRange,
  ): Promise<{ readonly key: string; readonly value: V }[]> {
    const entries = await tx.list(this.name, range);
    return entries.map(([key, text]) => ({ key, value: parseRecord<V>(text) }));
  }

  put(tx: StoreWriter, key: string, value: V): Promise<void> {
    return tx.put(this.name, key, JSON.stringify(value));
  }

  delete(tx: StoreWriter, key: string): Promise<void> {
    return tx.delete(this.name, key);
  }
}
