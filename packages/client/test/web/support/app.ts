/** The program of a page: an account in IndexedDB. Tests run its expressions from outside. */
import { Network, staticRegistry } from '@posthouse/protocol';
import { type Account, Client, webTransport } from '../../../src/index.ts';
import { IndexedDbStore, webPrimitives } from '../../../src/web/index.ts';

/** What a page needs to know of a network. */
export interface PageNetwork {
  readonly context: string;
  /** Content of the registry's file. */
  readonly registry: object;
}

/** Opens the account of the page's store, or sets a new one up. */
export async function openAccount({ context, registry }: PageNetwork): Promise<Account> {
  const network = new Network({ context, primitives: webPrimitives });
  const client = await Client.open({
    network,
    registry: staticRegistry(network, registry),
    transport: webTransport,
    store: await IndexedDbStore.open('app'),
  });
  try {
    return await client.account();
  } catch {
    return await client.setUp();
  }
}

/** Follows until so many messages have arrived, and returns their texts in order of arrival. */
export async function followMessages(account: Account, count: number): Promise<unknown[]> {
  const stop = new AbortController();
  const texts: unknown[] = [];
  for await (const event of account.follow({ signal: stop.signal })) {
    if (event.kind !== 'message' || event.message.from === account.id) continue;
    texts.push(event.message.body?.text);
    if (texts.length === count) stop.abort();
  }
  return texts;
}
