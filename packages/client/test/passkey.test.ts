/** Keys that a passkey opens (decision 0043): real cryptography, a browser's answers by a double. */
import { createDecipheriv, hkdfSync } from 'node:crypto';
import { deriveAccountId, encodeBase64url, Network } from '@posthouse/protocol';
import { nodePrimitives } from '@posthouse/protocol/node';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  createPasskey,
  type NewPasskeyOptions,
  openWithPasskey,
  type PasskeyDocument,
  passkeyStatus,
  removePasskey,
} from '../src/web/passkey/index.ts';
import { FakeAuthenticator } from './web/support/fake-authenticator.ts';

const network = new Network({
  context: `neo:860833102:0x${'ab'.repeat(20)}`,
  primitives: nodePrimitives,
});
const key = new Uint8Array(32).fill(7);
const accountOf = (bytes: Uint8Array) =>
  deriveAccountId(network, encodeBase64url(nodePrimitives.p256.publicKey(bytes)));
const account = accountOf(key);

/** A wallet that names the account of a key; its password does not matter here. */
function walletOf(bytes: Uint8Array) {
  const [, , address = ''] = accountOf(bytes).split(':');
  return { scrypt: { n: 16_384, r: 8, p: 8 }, accounts: [{ address, key: '6P' as string | null }] };
}
const fallback = walletOf(key);

let authenticator: FakeAuthenticator;
beforeEach(() => {
  authenticator = new FakeAuthenticator();
  authenticator.install();
});
afterEach(() => {
  vi.unstubAllGlobals();
});

const create = (options: Partial<NewPasskeyOptions> = {}) =>
  createPasskey(network, key, { name: 'Ann', fallback, ...options });
const open = (...documents: PasskeyDocument[]) => openWithPasskey(network, documents);
const hasCode = (code: string) => expect.objectContaining({ name: 'ClientError', code });
const methods = () => authenticator.calls.map(({ method }) => method);
const areZero = () => authenticator.outputs.every((output) => output.every((byte) => byte === 0));

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
    const output = authenticator.prfOf(credential_id, bytes(salt));
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
    const [first, second, last] = authenticator.calls.map(({ publicKey }) => publicKey);
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
    authenticator.prf = 'existing';
    const document = await create();
    expect(methods()).toEqual(['create', 'get']);
    expect((await open(document)).key).toEqual(key);
  });

  test('leaves no output of the authenticator in memory, also after a failure', async () => {
    const document = await create();
    await open(document);
    await expect(open({ ...document, nonce: 'A'.repeat(16) })).rejects.toThrow();
    authenticator.flags = 0b001;
    await expect(create()).rejects.toThrow();
    await expect(open(document)).rejects.toThrow();
    expect(authenticator.outputs.length).toBe(5);
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
    expect(authenticator.hidden).toEqual([]);
    const second = new FakeAuthenticator();
    second.install();
    const two = await create({ others });
    expect((await open(one, two)).document).toBe(two);
    authenticator.install();
    expect((await open(one, two)).document).toBe(one);

    expect(await removePasskey([one, two], one)).toEqual([two]);
    expect(authenticator.hidden).toEqual([one.credential_id]);
    await expect(open(two)).rejects.toEqual(hasCode('passkey_refused'));
  });

  test('passkeys of another key or purpose exclude no authenticator', async () => {
    const others = [await create({ purpose: 'store-key' })];
    const otherKey = new Uint8Array(32).fill(8);
    const options = { name: 'Bob', fallback: walletOf(otherKey) };
    others.push(await createPasskey(network, otherKey, options));
    expect((await create({ others })).account).toBe(account);
  });

  test('16 can be opened, a 17th cannot be made or passed in', async () => {
    const document = await create();
    const others = Array.from({ length: 15 }, () => document);
    const names = { ...document, account: accountOf(new Uint8Array(32).fill(8)) };
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
    const { publicKey } = authenticator.calls.at(-1) as { publicKey: { allowCredentials: [] } };
    expect(publicKey.allowCredentials.length).toBe(1);
  });
});

describe('a document that was changed is refused', () => {
  const long = 'A'.repeat(1_366);
  test.each<[string, object, string, asked: boolean]>([
    ['another version', { version: 2 }, 'passkey_mismatch', false],
    ['no version', { version: undefined }, 'passkey_mismatch', false],
    ['an unknown member', { more: 1 }, 'passkey_mismatch', false],
    ['another purpose', { purpose: 'store-key' }, 'passkey_mismatch', false],
    ['no account ID', { account: 'neo:860833102:x' }, 'passkey_mismatch', false],
    [
      'another account',
      { account: accountOf(new Uint8Array(32).fill(8)) },
      'passkey_mismatch',
      true,
    ],
    ['another credential', { credential_id: 'AAAA' }, 'passkey_refused', true],
    ['a credential that is no base64url', { credential_id: 'A' }, 'passkey_mismatch', false],
    ['a credential of 1,024 bytes', { credential_id: long }, 'passkey_mismatch', false],
    ['another domain', { rp_id: 'other.example' }, 'passkey_wrong_site', false],
    ['another salt', { salt: 'A'.repeat(43) }, 'passkey_mismatch', true],
    ['a short salt', { salt: 'A'.repeat(42) }, 'passkey_mismatch', false],
    ['another nonce', { nonce: 'A'.repeat(16) }, 'passkey_mismatch', true],
    ['a short nonce', { nonce: 'A'.repeat(15) }, 'passkey_mismatch', false],
    ['another ciphertext', { ciphertext: 'A'.repeat(64) }, 'passkey_mismatch', true],
    ['a short ciphertext', { ciphertext: 'A'.repeat(43) }, 'passkey_mismatch', false],
  ])('%s', async (_what, change, code, isAsked) => {
    const changed = { ...(await create()), ...change };
    const opening = open(changed);
    await expect(opening).rejects.toEqual(hasCode(code));
    await expect(opening).rejects.toThrow(/use the password/);
    expect(methods()).toEqual(isAsked ? ['create', 'get'] : ['create']);
  });

  test('no document', async () => {
    await expect(open()).rejects.toEqual(hasCode('passkey_mismatch'));
  });
});

/** What goes wrong at the browser, with the code that both calls fail with. */
const faults: readonly (readonly [string, code: string, () => void])[] = [
  ['a page without HTTPS', 'passkey_unavailable', () => vi.stubGlobal('isSecureContext', false)],
  ['no WebAuthn', 'passkey_unavailable', () => vi.stubGlobal('PublicKeyCredential', undefined)],
  ['a worker', 'passkey_unavailable', () => vi.stubGlobal('navigator', {})],
  ['an authenticator without PRF', 'passkey_unsuitable', () => setPrf('never')],
  ['one that announces PRF and gives nothing', 'passkey_unsuitable', () => setPrf('enabled only')],
  ['PRF outputs of 31 bytes', 'passkey_unsuitable', () => setAnswer(shortOutput)],
  ['cancelled or too late', 'passkey_refused', () => setFailure('NotAllowedError')],
  ['another request of the page', 'passkey_refused', () => setFailure('AbortError')],
  ['a fault of the browser', 'passkey_refused', () => setFailure('UnknownError')],
  ['a domain that is not the page’s', 'passkey_wrong_site', () => setFailure('SecurityError')],
  ['no verification of persons', 'passkey_unsuitable', () => setFailure('ConstraintError')],
  ['no algorithm', 'passkey_unsuitable', () => setFailure('NotSupportedError')],
  ['a person who was not verified', 'passkey_refused', () => setFlags(0b001)],
  ['no person', 'passkey_refused', () => setFlags(0b100)],
  ['data of another type', 'passkey_refused', () => setClientData({ type: 'payment.get' })],
  ['another challenge', 'passkey_refused', () => setClientData({ challenge: 'AAAA' })],
  ['another origin', 'passkey_refused', () => setClientData({ origin: 'https://evil.example' })],
  ['a frame in another site', 'passkey_wrong_site', () => setClientData({ crossOrigin: true })],
  ['data that is no JSON', 'passkey_refused', () => setAnswer(noClientData)],
  ['data of another domain', 'passkey_refused', () => setAnswer(otherDomain)],
];
// biome-ignore lint/suspicious/noExplicitAny: an answer of a browser, of which the project has no types.
type Answer = any;
const setPrf = (prf: FakeAuthenticator['prf']) => Object.assign(authenticator, { prf });
const setFailure = (failure: string) => Object.assign(authenticator, { failure });
const setFlags = (flags: number) => Object.assign(authenticator, { flags });
const setClientData = (clientData: object) => Object.assign(authenticator, { clientData });
const setAnswer = (alter: (answer: Answer) => void) => Object.assign(authenticator, { alter });
const shortOutput = ({ extensions }: Answer) => {
  extensions.prf.results.first = new ArrayBuffer(31);
};
const noClientData = ({ response }: Answer) => {
  response.clientDataJSON = new ArrayBuffer(3);
};
const otherDomain = ({ response }: Answer) => {
  response.authenticatorData = new Uint8Array(37).fill(5).buffer;
  response.getAuthenticatorData = () => response.authenticatorData;
};

describe('a failure has a code and names the password', () => {
  test.each(faults)('when a key is opened: %s', async (_what, code, set) => {
    const document = await create();
    set();
    const opening = open(document);
    await expect(opening).rejects.toEqual(hasCode(code));
    await expect(opening).rejects.toThrow(/(use|or) the password$/);
  });

  test.each(faults)('when a passkey is made: %s', async (_what, code, set) => {
    set();
    await expect(create()).rejects.toEqual(hasCode(code));
    // A passkey that was made and opens nothing is hidden.
    const wasMade = methods()[0] === 'create' && authenticator.failure === undefined;
    expect(authenticator.hidden.length).toBe(wasMade ? 1 : 0);
  });

  test('if another authenticator answers with the same credential ID', async () => {
    const document = await create();
    authenticator.replaceSecrets();
    await expect(open(document)).rejects.toEqual(hasCode('passkey_mismatch'));
  });

  test('if an authenticator answers with a passkey of no document', async () => {
    const document = await create();
    authenticator.alter = (answer) => Object.assign(answer, { rawId: new ArrayBuffer(16) });
    await expect(open(document)).rejects.toEqual(hasCode('passkey_mismatch'));
    expect(areZero()).toBe(true);
  });

  test('an aborted call fails with the reason of its signal, and asks nothing if it was aborted before', async () => {
    const document = await create();
    const reason = new Error('enough');
    const aborted = { signal: AbortSignal.abort(reason) };
    await expect(openWithPasskey(network, [document], aborted)).rejects.toBe(reason);
    await expect(create(aborted)).rejects.toBe(reason);
    expect(methods()).toEqual(['create']);
    const stop = new AbortController();
    authenticator.failure = 'AbortError';
    const opening = openWithPasskey(network, [document], stop);
    stop.abort(reason);
    await expect(opening).rejects.toBe(reason);
  });

  test('no failure shows the key', async () => {
    const document = await create();
    authenticator.replaceSecrets();
    const error: Error = await open(document).catch((fault) => fault);
    const shown = [document, error, error.stack, error.cause].map((one) => JSON.stringify(one));
    for (const text of [Buffer.from(key).toString('hex'), encodeBase64url(key)]) {
      expect(shown.join()).not.toContain(text);
    }
  });
});

describe('input that cannot be used asks no authenticator', () => {
  const otherWallet = walletOf(new Uint8Array(32).fill(8));
  const [watched] = fallback.accounts;
  test.each<[string, Partial<NewPasskeyOptions>]>([
    ['an empty name', { name: '' }],
    ['a name of 65 bytes', { name: `${'ä'.repeat(32)}a` }],
    ['a fallback of another key', { fallback: otherWallet }],
    [
      'a fallback without a key',
      { fallback: { ...fallback, accounts: [{ ...watched!, key: null }] } },
    ],
    [
      'a fallback that is too costly to open',
      { fallback: { ...fallback, scrypt: { n: 2 ** 30, r: 8, p: 8 } } },
    ],
    ['a fallback that is no wallet', { fallback: {} as never }],
    ['no fallback', { fallback: undefined as never }],
  ])('%s', async (_what, options) => {
    await expect(create(options)).rejects.toEqual(hasCode('invalid_input'));
    expect(methods()).toEqual([]);
  });

  test.each([
    ['31 bytes', new Uint8Array(31).fill(7)],
    ['33 bytes', new Uint8Array(33).fill(7)],
    ['zero', new Uint8Array(32)],
    ['a number above the order of the curve', new Uint8Array(32).fill(255)],
  ])('a key of %s', async (_what, bytes) => {
    const creating = createPasskey(network, bytes, { name: 'Ann', fallback });
    await expect(creating).rejects.toEqual(hasCode('invalid_input'));
    expect(methods()).toEqual([]);
  });

  test('a name of 64 bytes can be used', async () => {
    expect((await create({ name: 'ä'.repeat(32) })).account).toBe(account);
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

  test.each(faults.slice(0, 3))('is no with %s', async (_what, _code, set) => {
    set();
    expect(await passkeyStatus()).toEqual({ works: 'no', onThisDevice: false });
  });
});
