import { wallet as neon } from '@cityofzion/neon-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { noblePrimitives } from '../../src/crypto/index.ts';
import { encryptNep2 } from '../../src/identity/wallet.ts';
import { hex, Network, openNep6Wallet, sealNep6Wallet } from '../../src/index.ts';

const network = new Network({
  context: `neo:860833102:0x${'00'.repeat(20)}`,
  primitives: noblePrimitives,
});
const key = Uint8Array.from({ length: 32 }, (_, at) => at + 1);

describe('01 appendix C: a wallet that is written', () => {
  let text = '';
  beforeAll(async () => {
    const options = { password: 'caf\u00e9 7', name: 'mine' };
    text = JSON.stringify(await sealNep6Wallet(network, key, options));
  });

  test('opens with its password, also if an accent is typed as a character of its own', async () => {
    const opened = await openNep6Wallet(network, JSON.parse(text), { password: 'cafe\u0301 7' });
    expect(opened.privateKey).toEqual(key);
    expect(text).not.toContain(hex(key));
  });

  test('has the members of such files, and opens in another program', async () => {
    const { address } = new neon.Account(hex(key));
    const wallet = new neon.Wallet(JSON.parse(text));
    const { accounts, ...rest } = wallet.export();
    expect(rest).toMatchObject({ name: 'mine', version: '1.0', scrypt: { n: 16_384, r: 8, p: 8 } });
    const { contract } = new neon.Account(new neon.Account(hex(key)).publicKey).export();
    expect(accounts).toMatchObject([{ address, isDefault: true, lock: false, contract }]);
    expect(await wallet.decrypt(0, 'caf\u00e9 7')).toBe(true);
    expect(wallet.accounts[0]?.privateKey).toBe(hex(key));
  });

  test('without a password, or without a key, there is none', async () => {
    await expect(sealNep6Wallet(network, key, { password: '' })).rejects.toThrow(TypeError);
    for (const wrong of [new Uint8Array(32), key.subarray(1)]) {
      await expect(sealNep6Wallet(network, wrong, { password: 'secret' })).rejects.toThrow();
    }
  });

  test('the key text of the published test wallet is made again', async () => {
    const one = Uint8Array.from({ length: 32 }, (_, at) => (at === 31 ? 1 : 0));
    const made = await encryptNep2(noblePrimitives, one, {
      password: 'Meshline test café',
      address: 'NVHt5YtAnadMwntAVAJLUy36M2nLYKHUeK',
      cost: { n: 16, r: 8, p: 1 },
    });
    expect(made).toBe('6PYQY227hpYjjeHVVZB2cUjBAQ8U7ZfAiVeb5sV4FaNxmvabqhQqek7cPN');
  });
});
