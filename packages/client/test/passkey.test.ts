/** Keys that a passkey opens (decision 0043): real cryptography, a browser's answers by a double. */
import { createDecipheriv, hkdfSync } from 'node:crypto';
import { encodeBase64url } from '@posthouse/protocol';
import { describe, expect, test, vi } from 'vitest';
import {
  createPasskey,
  openWithPasskey,
  type PasskeyDocument,
  passkeyStatus,
  removePasskey,
} from '../src/web/passkey/index.ts';
import { FakeAuthenticator } from './support/fake-authenticator.ts';
import {
  account,
  accountOf,
  create,
  hasCode,
  key,
  network,
  open,
  otherKey,
  otherWallet,
  pageWithAuthenticator,
} from './support/passkeys.ts';

const page = pageWithAuthenticator();
const methods = () => page.current.calls.map(({ method }) => method);
const areZero = () => page.current.outputs.every((output) => output.every((byte) => byte === 0));

describe('a key wrapped with a passkey', () => {
  test('is opened by the passkey, and by the formula of decision 0043', async () => {
    const document = await create();
    expect(await open(document)).toEqual({ account, key, document });
    expect(key).toEqual(new Uint8Array(32).fill(7));
    expect(Object.keys(document)).toEqual([
      ...['version', 'purpose', 'account', 'credential_id', 'rp_id', 'salt', 'nonce', 'ciphertext'],
    ]);

    const bytes = (text: string) => Buffer.from(text, 'base64url');
    const { version, purpose, credential_id, rp_id, salt, nonce, ciphertext } = document;
    const output = page.current.prfOf(credential_id, bytes(salt));
    const derived = hkdfSync('sha256', output, bytes(salt), 'posthouse passkey 1 account-key', 32);
    const decipher = createDecipheriv('aes-256-gcm', Buffer.from(derived), bytes(nonce));
    const authenticated = [version, purpose, account, credential_id, rp_id, salt];
    decipher.setAAD(Buffer.from(JSON.stringify(authenticated)));
    decipher.setAuthTag(bytes(ciphertext).subarray(32));
    const opened = decipher.update(bytes(ciphertext).subarray(0, 32));
    decipher.final();
    expect(new Uint8Array(opened)).toEqual(key);
  });

  test('has a salt, a challenge and a user ID of its own, and asks for verification each time', async () => {
    const documents = [await create(), await create()];
    await open(...documents);
    const [first, second, last] = page.current.calls.map(({ publicKey }) => publicKey);
    for (const { rp, user, challenge, authenticatorSelection, attestation } of [first, second]) {
      expect({ rp, authenticatorSelection, attestation }).toEqual({
        rp: { id: 'app.example', name: 'app.example' },
        authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
        attestation: 'none',
      });
      expect([user.name, user.id.length, challenge.length]).toEqual(['Ann', 32, 32]);
    }
    expect(first.user.id).not.toEqual(second.user.id);
    expect(new Set(documents.map(({ salt }) => salt)).size).toBe(2);
    expect([last.userVerification, last.rpId]).toEqual(['required', 'app.example']);
    const challenges = [first, second, last].map(({ challenge }) => encodeBase64url(challenge));
    expect(new Set(challenges).size).toBe(3);
  });

  test('is made by asking twice if the authenticator computes only for an existing passkey', async () => {
    page.current.prf = 'existing';
    const document = await create();
    expect(methods()).toEqual(['create', 'get']);
    expect((await open(document)).key).toEqual(key);
  });

  test('leaves no output of the authenticator in memory, also after a failure', async () => {
    const document = await create();
    await open(document);
    await expect(open({ ...document, nonce: 'A'.repeat(16) })).rejects.toThrow();
    page.current.flags = 0b001;
    await expect(create()).rejects.toThrow();
    await expect(open(document)).rejects.toThrow();
    expect(page.current.outputs.length).toBe(5);
    expect(areZero()).toBe(true);
  });

  test('opens at a domain above the page if both calls name it, and not without', async () => {
    const document = await create({ rpId: 'example' });
    expect(document.rp_id).toBe('example');
    await expect(open(document)).rejects.toEqual(hasCode('passkey_wrong_site'));
    expect((await openWithPasskey(network, [document], { rpId: 'example' })).key).toEqual(key);
  });

  test('for a store does not open as an account key, nor if its document says so', async () => {
    const document = await create({ purpose: 'store-key' });
    await expect(open(document)).rejects.toEqual(hasCode('passkey_mismatch'));
    expect(methods()).toEqual(['create']);
    const renamed = { ...document, purpose: 'account-key' as const };
    await expect(open(renamed)).rejects.toEqual(hasCode('passkey_mismatch'));
    const opened = await openWithPasskey(network, [document], { purpose: 'store-key' });
    expect(opened.key).toEqual(key);
  });
});

describe('several passkeys of a key', () => {
  test('open it with any; the one that was used is named; a removed one is hidden and gone', async () => {
    const one = await create();
    const others = [one];
    await expect(create({ others })).rejects.toEqual(hasCode('passkey_exists'));
    expect(page.current.hidden).toEqual([]);
    const second = new FakeAuthenticator();
    second.install();
    const two = await create({ others });
    expect((await open(one, two)).document).toBe(two);
    page.current.install();
    expect((await open(one, two)).document).toBe(one);

    expect(await removePasskey([one, two], one)).toEqual([two]);
    expect(page.current.hidden).toEqual([one.credential_id]);
    await expect(open(two)).rejects.toEqual(hasCode('passkey_refused'));
  });

  test('passkeys of another key or purpose exclude no authenticator', async () => {
    const others = [await create({ purpose: 'store-key' })];
    const options = { name: 'Bob', fallback: otherWallet };
    others.push(await createPasskey(network, otherKey, options));
    expect((await create({ others })).account).toBe(account);
  });

  test('16 can be opened, a 17th cannot be made or passed in', async () => {
    const document = await create();
    const others = Array.from({ length: 15 }, () => document);
    const names = { ...document, account: accountOf(otherKey) };
    expect((await create({ others: others.map(() => names) })).account).toBe(account);
    await expect(create({ others: [...others, document] })).rejects.toEqual(
      hasCode('invalid_input'),
    );
    expect((await open(...others, document)).key).toEqual(key);
    await expect(open(...others, document, document)).rejects.toEqual(hasCode('invalid_input'));
  });

  test('damaged documents and those of other domains do not keep the others from opening', async () => {
    const document = await create();
    const elsewhere = { ...document, rp_id: 'other.example', credential_id: 'AAAA' };
    const damaged = [null, { ...document, version: 2 }] as unknown as PasskeyDocument[];
    expect((await open(...damaged, elsewhere, document)).key).toEqual(key);
    const { publicKey } = page.current.calls.at(-1) as { publicKey: { allowCredentials: [] } };
    expect(publicKey.allowCredentials.length).toBe(1);
  });
});

describe('passkeyStatus', () => {
  const capabilities = (prf: boolean | undefined) => async () => ({
    ...(prf !== undefined && { 'extension:prf': prf }),
  });
  const platform = (isThere: boolean) => async () => isThere;
  const fails = () => Promise.reject(new Error('not permitted'));
  test.each([
    ['both', capabilities(true), platform(true), 'likely', true],
    ['PRF, no platform authenticator', capabilities(true), platform(false), 'unknown', false],
    ['no PRF', capabilities(false), platform(true), 'no', true],
    ['nothing said of PRF', capabilities(undefined), platform(true), 'unknown', true],
    ['a browser without these questions', undefined, undefined, 'unknown', false],
    ['a browser that refuses to say', fails, fails, 'unknown', false],
  ] as const)('with %s', async (_what, getClientCapabilities, isAvailable, works, onThisDevice) => {
    vi.stubGlobal('PublicKeyCredential', {
      getClientCapabilities,
      isUserVerifyingPlatformAuthenticatorAvailable: isAvailable,
    });
    expect(await passkeyStatus()).toEqual({ works, onThisDevice });
    expect(methods()).toEqual([]);
  });

  test.each([
    ['isSecureContext', false],
    ['PublicKeyCredential', undefined],
    ['navigator', {}],
  ])('is no with the global %s as %j', async (name, value) => {
    vi.stubGlobal(name, value);
    expect(await passkeyStatus()).toEqual({ works: 'no', onThisDevice: false });
  });
});
