/** What fails of keys that a passkey opens (decision 0043): each has a code, and the password as its cure. */
import { decodeBase64url, encodeBase64url } from '@posthouse/protocol';
import { describe, expect, test, vi } from 'vitest';
import {
  createPasskey,
  type NewPasskeyOptions,
  openWithPasskey,
} from '../src/web/passkey/index.ts';
import { sealKey } from '../src/web/passkey/passkey-document.ts';
import type { FakeAuthenticator } from './support/fake-authenticator.ts';
import {
  account,
  accountOf,
  create,
  fallback,
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

describe('a document that was changed is refused', () => {
  const long = 'A'.repeat(1_366);
  test.each<[string, object, string, asked: boolean]>([
    ['another version', { version: 2 }, 'passkey_mismatch', false],
    ['no version', { version: undefined }, 'passkey_mismatch', false],
    ['an unknown member', { more: 1 }, 'passkey_mismatch', false],
    ['another purpose', { purpose: 'store-key' }, 'passkey_mismatch', false],
    ['no account ID', { account: 'neo:860833102:x' }, 'passkey_mismatch', false],
    ['another account', { account: accountOf(otherKey) }, 'passkey_mismatch', true],
    ['another credential', { credential_id: 'AAAA' }, 'passkey_refused', true],
    ['a credential that is no base64url', { credential_id: 'AB' }, 'passkey_mismatch', false],
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

  test('another key, sealed as that of the account', async () => {
    const { nonce: _, ciphertext: __, ...facts } = await create();
    const salt = decodeBase64url(facts.salt) as Uint8Array;
    const output = page.current.prfOf(facts.credential_id, salt);
    await expect(open(await sealKey(otherKey, output, facts))).rejects.toEqual(
      hasCode('passkey_mismatch'),
    );
  });

  test.each([[[]], [undefined], [{}]])('%j in place of documents', async (documents) => {
    const opening = openWithPasskey(network, documents as never);
    await expect(opening).rejects.toEqual(hasCode('passkey_mismatch'));
    expect(methods()).toEqual([]);
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
const setPrf = (prf: FakeAuthenticator['prf']) => Object.assign(page.current, { prf });
const setFailure = (failure: string) => Object.assign(page.current, { failure });
const setFlags = (flags: number) => Object.assign(page.current, { flags });
const setClientData = (clientData: object) => Object.assign(page.current, { clientData });
const setAnswer = (alter: (answer: Answer) => void) => Object.assign(page.current, { alter });
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
    const wasMade = methods()[0] === 'create' && page.current.failure === undefined;
    expect(page.current.hidden.length).toBe(wasMade ? 1 : 0);
  });

  test('if another authenticator answers with the same credential ID', async () => {
    const document = await create();
    page.current.replaceSecrets();
    await expect(open(document)).rejects.toEqual(hasCode('passkey_mismatch'));
  });

  test('if an authenticator answers with a passkey of no document', async () => {
    const document = await create();
    page.current.alter = (answer) => Object.assign(answer, { rawId: new ArrayBuffer(16) });
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
    page.current.failure = 'AbortError';
    const opening = openWithPasskey(network, [document], stop);
    stop.abort(reason);
    await expect(opening).rejects.toBe(reason);
  });

  test('no failure shows the key', async () => {
    const document = await create();
    page.current.replaceSecrets();
    const error: Error = await open(document).catch((fault) => fault);
    const shown = [document, error, error.stack, error.cause].map((one) => JSON.stringify(one));
    for (const text of [Buffer.from(key).toString('hex'), encodeBase64url(key)]) {
      expect(shown.join()).not.toContain(text);
    }
  });
});

describe('input that cannot be used asks no authenticator', () => {
  const withKey = (text: string | null) => ({
    ...fallback,
    accounts: fallback.accounts.map((one) => ({ ...one, key: text })),
  });
  const [text = '', otherText = ''] = [fallback, otherWallet].map(
    ({ accounts: [one] }) => one?.key as string,
  );
  test.each<[string, Partial<NewPasskeyOptions>]>([
    ['an empty name', { name: '' }],
    ['a name of 65 bytes', { name: `${'ä'.repeat(32)}a` }],
    ['a fallback of another key', { fallback: otherWallet }],
    ['a fallback without a key', { fallback: withKey(null) }],
    ['a fallback that was cut', { fallback: withKey(text.slice(0, -1)) }],
    ['a fallback with the text of another key', { fallback: withKey(otherText) }],
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

  test('a browser that says that it has no PRF', async () => {
    vi.stubGlobal('PublicKeyCredential', {
      getClientCapabilities: async () => ({ 'extension:prf': false }),
    });
    await expect(create()).rejects.toEqual(hasCode('passkey_unavailable'));
    expect(methods()).toEqual([]);
  });

  test('a name of 64 bytes can be used', async () => {
    expect((await create({ name: 'ä'.repeat(32) })).account).toBe(account);
  });
});
