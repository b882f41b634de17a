/** A page with one authenticator, on Node, and a key to wrap: fixtures of the tests of passkeys. */
import { deriveAccountId, encodeBase64url, Network } from '@posthouse/protocol';
import { nodePrimitives } from '@posthouse/protocol/node';
import { afterEach, beforeEach, expect, vi } from 'vitest';
import { encryptNep2 } from '../../../protocol/src/identity/wallet.ts';
import {
  createPasskey,
  type NewPasskeyOptions,
  openWithPasskey,
  type PasskeyDocument,
} from '../../src/web/passkey/index.ts';
import { FakeAuthenticator } from './fake-authenticator.ts';

export const network = new Network({
  context: `neo:860833102:0x${'ab'.repeat(20)}`,
  primitives: nodePrimitives,
});
export const key = new Uint8Array(32).fill(7);
export const otherKey = new Uint8Array(32).fill(8);
export const accountOf = (bytes: Uint8Array) =>
  deriveAccountId(network, encodeBase64url(nodePrimitives.p256.publicKey(bytes)));
export const account = accountOf(key);

/** A wallet of a key, with costs made for tests. */
async function walletOf(bytes: Uint8Array) {
  const [, , address = ''] = accountOf(bytes).split(':');
  const cost = { n: 2, r: 1, p: 1 };
  const text = await encryptNep2(nodePrimitives, bytes, { password: 'secret', address, cost });
  return { scrypt: cost, accounts: [{ address, key: text as string | null }] };
}
export const fallback = await walletOf(key);
export const otherWallet = await walletOf(otherKey);

/** Gives each test of the file a page with a new authenticator. */
export function pageWithAuthenticator(): { readonly current: FakeAuthenticator } {
  const page = { current: new FakeAuthenticator() };
  beforeEach(() => {
    page.current = new FakeAuthenticator();
    page.current.install();
  });
  afterEach(() => {
    vi.unstubAllGlobals();
  });
  return page;
}

export const create = (options: Partial<NewPasskeyOptions> = {}) =>
  createPasskey(network, key, { name: 'Ann', fallback, ...options });
export const open = (...documents: PasskeyDocument[]) => openWithPasskey(network, documents);
export const hasCode = (code: string) => expect.objectContaining({ name: 'ClientError', code });
