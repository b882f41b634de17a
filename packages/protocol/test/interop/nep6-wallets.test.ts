import { describe, expect, test } from 'vitest';
import { noblePrimitives } from '../../src/crypto/index.ts';
import { scriptHash } from '../../src/identity/account-id.ts';
import {
  accountSigner,
  encodeBase64url,
  fromHex,
  Network,
  openNep6Wallet,
} from '../../src/index.ts';
import { describeVectors } from './vectors.ts';

interface Wallets {
  vectors: {
    name: string;
    password: string;
    publicKeys: string[];
    wallet: {
      scrypt: { n: number; r: number; p: number };
      accounts: { address: string; isDefault: boolean; contract: { script: string } }[];
    };
  }[];
}

const network = new Network({
  context: `neo:860833102:0x${'00'.repeat(20)}`,
  primitives: noblePrimitives,
});

/** Members of the file format that say nothing about keys. */
const extras = [0, 1].flatMap((at) => {
  const wallet = `/vectors/${at}/wallet`;
  const accounts = [0, 1].map((account) => `${wallet}/accounts/${account}`);
  const parts = accounts.flatMap((account) => [
    `${account}/label`,
    `${account}/lock`,
    `${account}/extra`,
    `${account}/contract/parameters`,
    `${account}/contract/deployed`,
  ]);
  return [...parts, `${wallet}/version`, `${wallet}/extra`];
});

describeVectors<Wallets>(
  'nep6-wallets',
  ({ data }) => {
    describe.each(data.vectors)('$name', ({ wallet, password, publicKeys }) => {
      test.each(wallet.accounts.map(({ address }, index) => [address, index] as const))(
        'account %s opens to its key',
        async (address, index) => {
          const key = await openNep6Wallet(network, wallet, { password, address });
          const publicKey = fromHex(publicKeys[index] ?? '');
          expect(key.publicKey).toBe(encodeBase64url(publicKey));
          expect(key.account).toBe(`neo:860833102:${address}`);
          expect(accountSigner(network, key.privateKey)).toMatchObject({
            account: key.account,
            publicKey: key.publicKey,
          });
          const script = atob(wallet.accounts[index]?.contract.script ?? '');
          const bytes = Uint8Array.from(script, (character) => character.charCodeAt(0));
          expect(noblePrimitives.ripemd160(noblePrimitives.sha256(bytes))).toEqual(
            scriptHash(noblePrimitives, publicKey),
          );
        },
      );

      test('without an address the default account opens, else the first', async () => {
        const preferred = wallet.accounts.find(({ isDefault }) => isDefault) ?? wallet.accounts[0];
        const { address } = await openNep6Wallet(network, wallet, { password });
        expect(address).toBe(preferred?.address);
      });

      test('01 appendix C: the password is normalized, whichever form is typed', async () => {
        const typed = password.normalize('NFD');
        expect(typed).not.toBe(password);
        const { address } = await openNep6Wallet(network, wallet, { password: typed });
        expect(address).toMatch(/^N/);
      });
    });
  },
  { unused: Object.fromEntries(extras.map((pointer) => [pointer, 'no part of the key'])) },
);
