/** Keys that a passkey opens, in addition to a password: never in its place. */
import {
  checkWalletKey,
  deriveAccountId,
  encodeBase64url,
  type Nep6Wallet,
  type Network,
  utf8Length,
} from '@posthouse/protocol';
import { webRandom } from '../../environment.ts';
import { ClientError } from '../../errors.ts';
import {
  evaluate,
  hideCredential,
  makeCredential,
  requirePasskeys,
  requirePrf,
} from './authenticator.ts';
import {
  bytesOf,
  documentVersion,
  isPasskeyDocument,
  type PasskeyDocument,
  type PasskeyPurpose,
  sealKey,
  unsealKey,
} from './passkey-document.ts';

/** Passkeys of one key. */
const mostDocuments = 16;

/** Bytes of a name; an authenticator may cut what is longer. */
const mostNameBytes = 64;

/** Options of {@link createPasskey}. */
export interface NewPasskeyOptions {
  /** What the person sees in the list of passkeys: 1 to 64 bytes. */
  readonly name: string;
  /**
   * A wallet of the same key, encrypted with a password (`sealNep6Wallet`). The app stores it next to
   * the document: a passkey can be lost, deleted, or be on a device that is not here.
   */
  readonly fallback: Nep6Wallet;
  /** What the key is for; `account-key` by default. */
  readonly purpose?: PasskeyPurpose;
  /**
   * The domain to bind the passkey to: the page's host name by default, or a domain that it is below.
   * The passkey opens on pages of this domain and of all names below it.
   */
  readonly rpId?: string;
  /** The documents that there are, so that no authenticator has two passkeys of the key; at most 15. */
  readonly others?: readonly PasskeyDocument[];
  readonly signal?: AbortSignal | undefined;
}

/** Options of {@link openWithPasskey}. */
export interface OpenPasskeyOptions {
  /** What the key is for; `account-key` by default. */
  readonly purpose?: PasskeyPurpose;
  /** The domain that the passkey is bound to, if it is not the page's host name. */
  readonly rpId?: string;
  readonly signal?: AbortSignal | undefined;
}

/** What {@link openWithPasskey} returns. */
export interface OpenedKey {
  /** The account ID of the key. */
  readonly account: string;
  /** 32 bytes; fill them with zeros when they were used. */
  readonly key: Uint8Array;
  /** The document whose passkey the person chose. */
  readonly document: PasskeyDocument;
}

/**
 * Makes a passkey and wraps a key with it: the account key, or the key of an encrypted store. Call it
 * after a click; the person is asked once, by some authenticators twice. The key stays recoverable by
 * the password of `fallback`.
 *
 * @param key 32 bytes, a private key; not changed
 * @returns a document without secrets, which the app stores as JSON
 * @throws ClientError `passkey_unavailable` (no HTTPS, no passkeys or no PRF in this browser, a
 *   worker), `passkey_unsuitable` (the authenticator has no PRF, or cannot verify the person), `passkey_refused`
 *   (cancelled, too late), `passkey_exists`, `passkey_wrong_site`; `invalid_input` for a key or name
 *   that cannot be used, or a fallback of another key
 * @example
 * import { webRandom } from '@posthouse/client';
 * import { createPasskey } from '@posthouse/client/web/passkey';
 * import { sealNep6Wallet } from '@posthouse/protocol';
 * const key = webRandom(32);
 * const fallback = await sealNep6Wallet(network, key, { password: 'four words by chance' });
 * const document = await createPasskey(network, key, { name: 'Ann', fallback });
 * localStorage.setItem('account', JSON.stringify({ fallback, passkeys: [document] }));
 */
export async function createPasskey(
  network: Network,
  key: Uint8Array,
  options: NewPasskeyOptions,
): Promise<PasskeyDocument> {
  const { name, fallback, purpose = 'account-key', others = [], signal } = options;
  const account = accountOfKey(network, key);
  if (account === undefined) throw invalid('the key is no private key of 32 bytes');
  requireFallback(network, fallback, account);
  if (name === '' || utf8Length(name) > mostNameBytes)
    throw invalid('the name has not 1 to 64 bytes');
  if (others.length >= mostDocuments) throw invalid('there are 16 passkeys: remove one first');
  const page = requirePasskeys(options.rpId);
  await requirePrf();
  const salt = webRandom(32);
  const isSame = (other: PasskeyDocument) =>
    isPasskeyDocument(other) && other.account === account && other.purpose === purpose;
  const exclude = others.filter(isSame).map((other) => other.credential_id);
  const made = await makeCredential(page, { name, salt, exclude, signal });
  const { credentialId } = made;
  let prf = made.prf;
  try {
    await made.check();
    // Many authenticators compute only when they are asked for an existing passkey.
    if (prf === undefined && made.hasPrf) {
      prf = (await evaluate(page, new Map([[credentialId, salt]]), signal)).prf;
    }
    if (prf === undefined) throw withoutPrf();
    return await sealKey(key, prf, {
      ...{ version: documentVersion, purpose, account },
      ...{ credential_id: credentialId, rp_id: page.rpId, salt: encodeBase64url(salt) },
    });
  } catch (error) {
    // It opens nothing: the person would try it later.
    await hideCredential(page.rpId, credentialId);
    throw error;
  } finally {
    prf?.fill(0);
  }
}

/**
 * Opens a key with one of its passkeys; the person chooses which if several are here. Documents that
 * are damaged, of another purpose or of another domain are passed over.
 *
 * @param documents at most 16
 * @throws ClientError, each of them a reason to ask for the password: `passkey_unavailable` (no HTTPS,
 *   no passkeys in this browser, a worker), `passkey_refused` (cancelled, too late, or no authenticator
 *   with these passkeys), `passkey_unsuitable` (no PRF), `passkey_wrong_site` (all of other domains),
 *   `passkey_mismatch` (no document, or altered ones); `invalid_input` for more than 16 documents
 * @example
 * import { openWithPasskey } from '@posthouse/client/web/passkey';
 * import { accountSigner } from '@posthouse/protocol';
 * const { passkeys } = JSON.parse(localStorage.getItem('account') ?? '{}');
 * const { key: opened } = await openWithPasskey(network, passkeys);
 * await account.devices.renew({ accountKey: accountSigner(network, opened) });
 * opened.fill(0);
 */
export async function openWithPasskey(
  network: Network,
  documents: readonly PasskeyDocument[],
  { purpose = 'account-key', rpId, signal }: OpenPasskeyOptions = {},
): Promise<OpenedKey> {
  // They come from the page's storage, which may have been changed.
  const given = Array.isArray(documents) ? documents : [];
  if (given.length > mostDocuments) throw invalid('there are more than 16 documents');
  const page = requirePasskeys(rpId);
  const usable = usableDocuments(given, { purpose, rpId: page.rpId });
  const salts = [...usable.values()].map((one) => [one.credential_id, bytesOf(one.salt)] as const);
  const { credentialId, prf } = await evaluate(page, new Map(salts), signal);
  try {
    const document = usable.get(credentialId);
    if (document === undefined) throw mismatch('the passkey is of no document');
    if (prf === undefined) throw withoutPrf();
    const key = await unsealKey(document, prf);
    if (key === undefined) throw mismatch('the document was altered, or is of another passkey');
    const { account } = document;
    if (accountOfKey(network, key) === account) return { account, key, document };
    key.fill(0);
    throw mismatch('the document has the key of another account');
  } finally {
    prf?.fill(0);
  }
}

/**
 * Removes a passkey from a list of documents, and asks the browser to hide it from the person. Store
 * the result: a copy of the removed document still opens with its passkey.
 *
 * @returns the other documents
 * @example
 * import { removePasskey } from '@posthouse/client/web/passkey';
 * const { passkeys, ...rest } = JSON.parse(localStorage.getItem('account') ?? '{}');
 * const others = await removePasskey(passkeys, passkeys[0]);
 * localStorage.setItem('account', JSON.stringify({ ...rest, passkeys: others }));
 */
export async function removePasskey(
  documents: readonly PasskeyDocument[],
  { credential_id, rp_id }: PasskeyDocument,
): Promise<PasskeyDocument[]> {
  await hideCredential(rp_id, credential_id);
  return documents.filter((one) => one.credential_id !== credential_id);
}

/** The documents that can be opened here, by credential ID. */
function usableDocuments(
  documents: readonly PasskeyDocument[],
  { purpose, rpId }: { readonly purpose: PasskeyPurpose; readonly rpId: string },
): ReadonlyMap<string, PasskeyDocument> {
  const whole = documents.filter((one) => isPasskeyDocument(one) && one.purpose === purpose);
  if (whole.length === 0) throw mismatch('there is no whole document of a passkey for this');
  const [first] = whole as [PasskeyDocument];
  const here = whole.filter((one) => one.rp_id === rpId);
  if (here.length > 0) return new Map(here.map((one) => [one.credential_id, one]));
  throw new ClientError(
    'passkey_wrong_site',
    `the passkey is bound to ${JSON.stringify(first.rp_id)}: open the app there, or use the password`,
  );
}

/** @throws ClientError `invalid_input` */
function requireFallback(network: Network, fallback: Nep6Wallet, account: string): void {
  const [, , address = ''] = account.split(':');
  try {
    checkWalletKey(network, fallback, address);
  } catch (cause) {
    throw invalid(
      'the fallback is no whole wallet of the key: make it with `sealNep6Wallet`',
      cause,
    );
  }
}

/** The account ID of a private key; `undefined` if it is none. */
function accountOfKey(network: Network, key: Uint8Array): string | undefined {
  try {
    return deriveAccountId(network, encodeBase64url(network.primitives.p256.publicKey(key)));
  } catch {
    return undefined;
  }
}

function withoutPrf(): ClientError {
  return new ClientError(
    'passkey_unsuitable',
    'the authenticator cannot protect a key (PRF): use another one, or the password',
  );
}

function mismatch(reason: string): ClientError {
  return new ClientError('passkey_mismatch', `${reason}: use the password`);
}

function invalid(reason: string, cause?: unknown): ClientError {
  return new ClientError('invalid_input', reason, { cause });
}
