import { describe, expect, test } from 'vitest';
import { noblePrimitives } from '../../src/crypto/index.ts';
import { checkNep6Wallet } from '../../src/identity/wallet.ts';
import { checkWalletKey, Network, openNep6Wallet, WalletError } from '../../src/index.ts';

const network = new Network({
  context: `neo:860833102:0x${'00'.repeat(20)}`,
  primitives: noblePrimitives,
});
/** Private key 1, password `Meshline test café`; costs made for tests. */
const account = {
  address: 'NVHt5YtAnadMwntAVAJLUy36M2nLYKHUeK',
  isDefault: false,
  key: '6PYQY227hpYjjeHVVZB2cUjBAQ8U7ZfAiVeb5sV4FaNxmvabqhQqek7cPN',
  label: null,
};
const wallet = { name: null, version: '1.0', scrypt: { n: 16, r: 8, p: 1 }, accounts: [account] };
const password = 'Meshline test café';

async function faultOf(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    if (error instanceof WalletError) return error.fault;
    throw error;
  }
  throw new Error('did not throw');
}

const open = (value: unknown, address?: string) =>
  openNep6Wallet(network, value, { password, ...(address === undefined ? {} : { address }) });

describe('01 appendix C: a NEP-6 wallet', () => {
  test('opens to the key of its address', async () => {
    const { privateKey, account: id } = await open(wallet);
    expect(privateKey).toEqual(Uint8Array.from({ length: 32 }, (_, at) => (at === 31 ? 1 : 0)));
    expect(id).toBe('neo:860833102:NVHt5YtAnadMwntAVAJLUy36M2nLYKHUeK');
  });

  test('a wrong password is told as such, and with nothing secret in the message', async () => {
    const work = () => openNep6Wallet(network, wallet, { password: 'secret words' });
    expect(await faultOf(work)).toBe('password');
    await expect(work()).rejects.toThrow('the password is wrong, or the key is damaged');
  });

  test('gives way to other work while it runs', async () => {
    const costly = { ...wallet, scrypt: { n: 16_384, r: 8, p: 1 } };
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 0);
    await expect(open(costly)).rejects.toThrow(WalletError);
    clearInterval(timer);
    expect(turns).toBeGreaterThan(0);
  });

  test.each<[string, unknown]>([
    ['not an object', null],
    ['without accounts', { scrypt: wallet.scrypt }],
    ['without scrypt costs', { accounts: [] }],
    ['with n = 1', { ...wallet, scrypt: { n: 1, r: 8, p: 1 } }],
    ['with n that is no power of two', { ...wallet, scrypt: { n: 24, r: 8, p: 1 } }],
    ['with r = 0', { ...wallet, scrypt: { n: 16, r: 0, p: 1 } }],
    ['with a negative p', { ...wallet, scrypt: { n: 16, r: 8, p: -1 } }],
    ['with a broken n', { ...wallet, scrypt: { n: 16.5, r: 8, p: 1 } }],
  ])('a file %s is not a wallet', async (_, value) => {
    expect(await faultOf(() => checkNep6Wallet(value))).toBe('format');
  });

  test.each([
    ['memory by n', { n: 131_072, r: 8, p: 1 }, { n: 262_144, r: 8, p: 1 }],
    ['memory by p', { n: 2, r: 1, p: 2_097_150 }, { n: 2, r: 1, p: 2_097_151 }],
    ['work', { n: 16_384, r: 8, p: 128 }, { n: 16_384, r: 8, p: 129 }],
  ])('%s is bounded before anything runs', async (_, within, above) => {
    expect(checkNep6Wallet({ ...wallet, scrypt: within })).toBeUndefined();
    expect(await faultOf(() => open({ ...wallet, scrypt: above }))).toBe('cost');
  });

  test.each<[string, unknown]>([
    ['a checksum that is wrong', account.key.replace(/N$/, 'M')],
    ['a character that is not Base58', account.key.replace('Y', '0')],
    ['57 characters', account.key.slice(0, -1)],
    ['a plain private key', 'KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn'],
  ])('a key text with %s is damaged', async (_, key) => {
    expect(await faultOf(() => open({ ...wallet, accounts: [{ ...account, key }] }))).toBe(
      'format',
    );
  });

  test('a key of another address than its entry names is refused', async () => {
    const other = { ...account, address: 'NLveEWWA7cAAKZ2pQMZraQ9TqMJbtMiGSm' };
    expect(await faultOf(() => open({ ...wallet, accounts: [other] }))).toBe('format');
  });

  test('accounts that are only watched are passed over', async () => {
    const watched = { address: 'NLveEWWA7cAAKZ2pQMZraQ9TqMJbtMiGSm', isDefault: true, key: null };
    const both = { ...wallet, accounts: [watched, account] };
    expect((await open(both)).address).toBe(account.address);
    expect(await faultOf(() => open(both, watched.address))).toBe('account');
    expect(await faultOf(() => open({ ...wallet, accounts: [watched] }))).toBe('account');
  });

  test('its key is checked without the password: which one, whole, of its address, not too costly', async () => {
    const other = 'NLveEWWA7cAAKZ2pQMZraQ9TqMJbtMiGSm';
    const check = (value: unknown, address = account.address) =>
      checkWalletKey(network, value, address);
    expect(
      check({ ...wallet, accounts: [{ address: other, key: null }, account] }),
    ).toBeUndefined();
    expect(await faultOf(() => check(wallet, other))).toBe('account');
    expect(await faultOf(() => check({}))).toBe('format');
    expect(await faultOf(() => check({ ...wallet, scrypt: { n: 16_384, r: 8, p: 129 } }))).toBe(
      'cost',
    );
    const damaged = { ...account, key: account.key.replace(/N$/, 'M') };
    expect(await faultOf(() => check({ ...wallet, accounts: [damaged] }))).toBe('format');
    const renamed = { ...wallet, accounts: [{ ...account, address: other }] };
    expect(await faultOf(() => check(renamed, other))).toBe('format');
  });

  test('an account the wallet does not have is told as such', async () => {
    expect(await faultOf(() => open(wallet, 'NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo'))).toBe('account');
  });
});
