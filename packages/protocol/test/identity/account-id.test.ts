import { describe, expect, test } from 'vitest';
import { noblePrimitives } from '../../src/crypto/index.ts';
import { scriptHash } from '../../src/identity/account-id.ts';
import {
  accountSigner,
  checkAccountId,
  decodeBase64url,
  deriveAccountId,
  deriveRelayId,
  encodeBase64url,
  fromHex,
  hex,
} from '../../src/index.ts';
import { account, codeOf, counting, network, otherChain, relay, relayId } from './appendix.ts';

const publicKey = fromHex('02515c3d6eb9e396b904d3feca7f54fdcd0cc1e997bf375dca515ad0a6c3b4035f');
const address = 'NgaxELHoZFpQWNwd74Fvq4wF3qz57WTfpp';

describe('01 §7: account IDs', () => {
  test('01 appendix A: the account key gives its public key, script hash and account ID', () => {
    expect(decodeBase64url(account.publicKey)).toEqual(publicKey);
    expect(hex(scriptHash(noblePrimitives, publicKey))).toBe(
      'e2c1f0c61d0c0cf2a4090a4775ee951b86441332',
    );
    expect(account.account).toBe(`neo:860833102:${address}`);
    expect(deriveAccountId(network, account.publicKey)).toBe(`neo:860833102:${address}`);
  });

  test('the check value: 32 bytes 01 give the published address and script hash', () => {
    const signer = accountSigner(network, new Uint8Array(32).fill(1));
    expect(signer.account).toBe('neo:860833102:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo');
    expect(deriveRelayId(network, signer.publicKey)).toBe(
      '0x902e0d38da5e513b6d07c1c55b85e77d3dce8063',
    );
  });

  test('a derived account ID has the magic of the trusted context', () => {
    expect(deriveAccountId(otherChain, account.publicKey)).toBe(`neo:860833103:${address}`);
  });

  test('a key that is not 33 bytes of canonical base64url derives nothing', () => {
    for (const key of [
      '',
      account.publicKey.slice(0, 43),
      `${account.publicKey}A`,
      '!'.repeat(44),
    ]) {
      expect(codeOf(() => deriveAccountId(network, key))).toBe('bad_request');
      expect(codeOf(() => deriveRelayId(network, key))).toBe('bad_request');
    }
  });

  test('a right account ID passes, of any key', () => {
    for (let first = 1; first < 40; first += 1) {
      const { account: id } = accountSigner(network, counting(first));
      expect(codeOf(() => checkAccountId(network, id))).toBeUndefined();
    }
  });

  test.each([
    ['', 'empty'],
    [address, 'the address alone'],
    [`neo:860833102`, 'no address'],
    [`neo:860833102:`, 'an empty address'],
    [`neo:860833102:${address}:x`, 'four parts'],
    [`Neo:860833102:${address}`, 'another case of the namespace'],
    [`eip155:860833102:${address}`, 'another namespace'],
    [`neo:860833103:${address}`, 'another magic'],
    [`neo:0860833102:${address}`, 'a leading zero'],
    [`neo:+860833102:${address}`, 'a plus'],
    [`neo:mainnet:${address}`, 'a network name'],
    [`neo:860833102: ${address}`, 'white space'],
    [`neo:860833102:${address}\n`, 'a line feed at the end'],
    [`neo:860833102:${address.slice(0, -1)}`, 'an address too short'],
    [`neo:860833102:${address}p`, 'an address too long'],
    [`neo:860833102:${address.slice(0, -1)}q`, 'a wrong checksum'],
    [`neo:860833102:${address.replace('Z', '0')}`, 'a character outside Base58'],
    [`neo:860833102:${address.toLowerCase()}`, 'another case of the address'],
    ['neo:860833102:1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2', 'another version byte, checksum right'],
    [`neo:860833102:${'1'.repeat(34)}`, 'another number of bytes'],
  ])('%j is refused: %s', (id) => {
    expect(codeOf(() => checkAccountId(network, id, 'account'))).toBe('bad_request');
  });

  test('the error names the member', () => {
    expect(() => checkAccountId(network, 'x', 'params.account')).toThrow(/^params\.account: /);
  });
});

describe('01 §12: relay IDs', () => {
  test('01 appendix A: a relay ID is the script hash in reverse', () => {
    expect(hex(decodeBase64url(relay.publicKey) as Uint8Array)).toBe(
      '03bd5714b9c20400411f1e51dbff63647f05d1d70b55fc200c6cad10c2f4614dc1',
    );
    expect(deriveRelayId(network, relay.publicKey)).toBe(relayId);
    expect(deriveRelayId(network, account.publicKey)).toBe(
      '0x321344861b95ee75470a09a4f20c0c1dc6f0c1e2',
    );
  });

  test('deriving a relay ID leaves the script hash as it is', () => {
    const key = decodeBase64url(relay.publicKey) as Uint8Array;
    deriveRelayId(network, encodeBase64url(key));
    expect(hex(scriptHash(noblePrimitives, key))).toBe('8e024339f609de07474f0f8aff6e4d72a631a447');
  });
});
