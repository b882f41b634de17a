/** What an app stores of a passkey: a key, encrypted with what the authenticator alone can compute. */
import {
  AccountId,
  checkSchema,
  decodeBase64url,
  encodeBase64url,
  ProtocolError,
  type Static,
  Type,
  utf8,
} from '@posthouse/protocol';
import { webRandom } from '../../environment.ts';

/** The version of the document's form and of how its key is derived. */
export const documentVersion = 1;

/** What a wrapped key is for. A document of one purpose never opens as one of the other. */
export type PasskeyPurpose = 'account-key' | 'store-key';

/**
 * A wrapped key, as plain data. It holds no secret that opens without its authenticator; it says which
 * account it is of. All members but the last two are authenticated with the ciphertext.
 */
export const PasskeyDocument = Type.Object(
  {
    version: Type.Literal(documentVersion),
    purpose: Type.Union([Type.Literal('account-key'), Type.Literal('store-key')]),
    /** The account ID of the key; for the key of a store, the ID that it would have. */
    account: AccountId,
    /** Base64url of at most 1,023 bytes. */
    credential_id: Type.String({ minLength: 2, maxLength: 1364 }),
    /** The domain that the passkey is bound to. */
    rp_id: Type.String({ minLength: 1, maxLength: 253 }),
    /** Base64url of 32 bytes: what the authenticator computes its secret for. */
    salt: Type.String({ maxLength: 43 }),
    /** Base64url of 12 bytes. */
    nonce: Type.String({ maxLength: 16 }),
    /** Base64url of 48 bytes: the key and a tag of 16 bytes. */
    ciphertext: Type.String({ maxLength: 64 }),
  },
  { additionalProperties: false },
);
export type PasskeyDocument = Static<typeof PasskeyDocument>;

/** What is authenticated with the ciphertext. */
type Facts = Omit<PasskeyDocument, 'nonce' | 'ciphertext'>;

/** Returns whether a value is a whole document of this version. */
export function isPasskeyDocument(value: unknown): value is PasskeyDocument {
  try {
    checkSchema(PasskeyDocument, value);
  } catch (error) {
    if (error instanceof ProtocolError) return false;
    throw error;
  }
  const { credential_id: id, salt, nonce, ciphertext } = value;
  const sizes = [salt, nonce, ciphertext].map((text) => decodeBase64url(text)?.length);
  return decodeBase64url(id) !== undefined && sizes.join() === '32,12,48';
}

/**
 * Encrypts a key with the output of the authenticator.
 *
 * @param prf 32 bytes, the authenticator's output for the salt
 */
export async function sealKey(
  key: Uint8Array,
  prf: Uint8Array,
  facts: Facts,
): Promise<PasskeyDocument> {
  const nonce = webRandom(12) as Uint8Array<ArrayBuffer>;
  const ciphertext = await crypto.subtle.encrypt(
    { name: 'AES-GCM', iv: nonce, additionalData: authenticated(facts) },
    await wrappingKey(prf, facts),
    key as Uint8Array<ArrayBuffer>,
  );
  return {
    ...facts,
    nonce: encodeBase64url(nonce),
    ciphertext: encodeBase64url(new Uint8Array(ciphertext)),
  };
}

/** Decrypts the key of a document; `undefined` if the document or the output is another one. */
export async function unsealKey(
  { nonce, ciphertext, ...facts }: PasskeyDocument,
  prf: Uint8Array,
): Promise<Uint8Array | undefined> {
  const key = await wrappingKey(prf, facts);
  try {
    const opened = await crypto.subtle.decrypt(
      { name: 'AES-GCM', iv: bytesOf(nonce), additionalData: authenticated(facts) },
      key,
      bytesOf(ciphertext),
    );
    return new Uint8Array(opened);
  } catch {
    return undefined;
  }
}

/** HKDF-SHA-256 of the authenticator's output; the key cannot be read from the page. */
async function wrappingKey(prf: Uint8Array, { purpose, salt }: Facts): Promise<CryptoKey> {
  const secret = await crypto.subtle.importKey(
    'raw',
    prf as Uint8Array<ArrayBuffer>,
    'HKDF',
    false,
    ['deriveKey'],
  );
  return await crypto.subtle.deriveKey(
    {
      ...{ name: 'HKDF', hash: 'SHA-256', salt: bytesOf(salt) },
      info: utf8(`posthouse passkey ${documentVersion} ${purpose}`) as Uint8Array<ArrayBuffer>,
    },
    secret,
    { name: 'AES-GCM', length: 256 },
    false,
    ['encrypt', 'decrypt'],
  );
}

function authenticated(facts: Facts): Uint8Array<ArrayBuffer> {
  const { version, purpose, account, credential_id, rp_id, salt } = facts;
  const text = JSON.stringify([version, purpose, account, credential_id, rp_id, salt]);
  return utf8(text) as Uint8Array<ArrayBuffer>;
}

/** The bytes of a member that {@link isPasskeyDocument} has seen. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return decodeBase64url(text) as Uint8Array<ArrayBuffer>;
}
