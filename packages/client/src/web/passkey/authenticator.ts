/** Calls of the browser's authenticators, and the checks of what they answer. */
import { decodeBase64url, encodeBase64url } from '@posthouse/protocol';
import { webRandom } from '../../environment.ts';
import { ClientError } from '../../errors.ts';
import { passkeyStatus } from './passkey-status.ts';
import { type Bytes, type CredentialsContainer, platform } from './webauthn.ts';

/** A page that can ask an authenticator. */
export interface PasskeyPage {
  readonly credentials: CredentialsContainer;
  readonly origin: string;
  /** The domain that its passkeys are bound to. */
  readonly rpId: string;
}

/** What an authenticator answered. */
interface Answer {
  /** Base64url. */
  readonly credentialId: string;
  /** 32 bytes that the authenticator computed for the salt, if it did. */
  readonly prf: Uint8Array | undefined;
}

/** A new passkey; `check` has to pass before anything else of it is used. */
interface NewCredential extends Answer {
  readonly hasPrf: boolean;
  check(): Promise<void>;
}

/** Signature algorithms of a new passkey: ES256, EdDSA, RS256. Its signatures are not used. */
const algorithms = [-7, -8, -257] as const;

/** Bits of the authenticator's flags: the person was there, and was verified. */
const presentAndVerified = 0b101;

/** @throws ClientError `passkey_unavailable` */
export function requirePasskeys(rpId?: string): PasskeyPage {
  const { isSecureContext, location, navigator, PublicKeyCredential } = platform;
  if (isSecureContext === false) throw unavailable('this page was not loaded over HTTPS');
  const credentials = navigator?.credentials;
  if (PublicKeyCredential === undefined || credentials === undefined || location === undefined) {
    throw unavailable('this browser has no passkeys, or this is no page');
  }
  return { credentials, origin: location.origin, rpId: rpId ?? location.hostname };
}

/**
 * Refuses a browser that says that it has no PRF: the person would make a passkey that opens nothing.
 *
 * @throws ClientError `passkey_unavailable`
 */
export async function requirePrf(): Promise<void> {
  const { works } = await passkeyStatus();
  if (works === 'no') throw unavailable('this browser cannot protect a key with a passkey (PRF)');
}

/**
 * Makes a passkey that the authenticator itself stores. Its user ID is random: a passkey made with
 * the user ID of another one replaces it.
 *
 * @throws ClientError `passkey_exists`, `passkey_refused`, `passkey_unsuitable`, `passkey_wrong_site`
 */
export async function makeCredential(
  page: PasskeyPage,
  options: {
    readonly name: string;
    readonly salt: Uint8Array;
    /** Base64url. */
    readonly exclude: readonly string[];
    readonly signal: AbortSignal | undefined;
  },
): Promise<NewCredential> {
  const { name, salt, exclude, signal } = options;
  const challenge = webRandom(32);
  const credential = await ask(signal, (given) =>
    page.credentials.create({
      publicKey: {
        challenge,
        rp: { id: page.rpId, name: page.rpId },
        user: { id: webRandom(32), name, displayName: name },
        pubKeyCredParams: algorithms.map((alg) => ({ type: 'public-key', alg })),
        excludeCredentials: exclude.map(named),
        authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
        attestation: 'none',
        extensions: { prf: { eval: { first: salt } } },
      },
      ...given,
    }),
  );
  const { rawId, response } = credential;
  const { prf } = credential.getClientExtensionResults();
  const output = outputOf(prf?.results?.first);
  return {
    credentialId: encodeBase64url(new Uint8Array(rawId)),
    prf: output,
    hasPrf: prf?.enabled === true || output !== undefined,
    check: () =>
      checkAnswer(page, { type: 'webauthn.create', challenge }, [
        response.clientDataJSON,
        response.getAuthenticatorData(),
      ]),
  };
}

/**
 * Asks for one of the passkeys, and has it compute the secret for its salt.
 *
 * @param salts by credential ID in base64url
 * @throws ClientError `passkey_refused`, `passkey_unsuitable`, `passkey_wrong_site`
 */
export async function evaluate(
  page: PasskeyPage,
  salts: ReadonlyMap<string, Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<Answer> {
  const challenge = webRandom(32);
  const inputs = [...salts].map(([id, first]) => [id, { first }] as const);
  const credential = await ask(signal, (given) =>
    page.credentials.get({
      publicKey: {
        ...{ challenge, rpId: page.rpId, userVerification: 'required' },
        allowCredentials: [...salts.keys()].map(named),
        extensions: { prf: { evalByCredential: Object.fromEntries(inputs) } },
      },
      ...given,
    }),
  );
  const prf = outputOf(credential.getClientExtensionResults().prf?.results?.first);
  const { clientDataJSON, authenticatorData } = credential.response;
  try {
    await checkAnswer(page, { type: 'webauthn.get', challenge }, [
      clientDataJSON,
      authenticatorData,
    ]);
  } catch (error) {
    prf?.fill(0);
    throw error;
  }
  return { credentialId: encodeBase64url(new Uint8Array(credential.rawId)), prf };
}

/** Asks the browser to hide a passkey that opens nothing any more. Not every browser can. */
export async function hideCredential(rpId: string, credentialId: string): Promise<void> {
  try {
    await platform.PublicKeyCredential?.signalUnknownCredential?.({ rpId, credentialId });
  } catch {
    // The person can delete it in the settings of the device.
  }
}

const named = (id: string) => ({ type: 'public-key', id: decodeBase64url(id) ?? id }) as never;

/** Runs a call of the browser; its failures become errors that name the cure. */
async function ask<T>(
  signal: AbortSignal | undefined,
  call: (given: { readonly signal?: AbortSignal }) => Promise<T | null>,
): Promise<T> {
  signal?.throwIfAborted();
  let answer: T | null;
  try {
    answer = await call(signal === undefined ? {} : { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw asPasskeyError(error);
  }
  if (answer === null) throw refused('the browser gave no passkey');
  return answer;
}

function asPasskeyError(error: unknown): unknown {
  if (!(error instanceof DOMException)) return error;
  const options = { cause: error };
  switch (error.name) {
    case 'InvalidStateError':
      return new ClientError(
        'passkey_exists',
        'this authenticator has a passkey of the account: use that one, or another authenticator',
        options,
      );
    case 'SecurityError':
      return new ClientError(
        'passkey_wrong_site',
        'the passkey is bound to another domain than that of this page: open the app there, or use the password',
        options,
      );
    case 'ConstraintError':
    case 'NotSupportedError':
      return new ClientError(
        'passkey_unsuitable',
        'the authenticator cannot verify the person or store a passkey: use another one, or the password',
        options,
      );
    default:
      // A browser does not say whether the person declined, or no authenticator has the passkey.
      return refused('cancelled, too late, or no passkey for it is here', options);
  }
}

/** What the call asked for. */
interface Asked {
  readonly type: 'webauthn.create' | 'webauthn.get';
  readonly challenge: Uint8Array;
}

/** @throws ClientError `passkey_refused`, `passkey_wrong_site` */
async function checkAnswer(
  { origin, rpId }: PasskeyPage,
  { type, challenge }: Asked,
  [clientData, authenticatorData]: readonly [ArrayBuffer, ArrayBuffer],
): Promise<void> {
  const { crossOrigin, ...client } = readClientData(clientData);
  const expected = { type, challenge: encodeBase64url(challenge), origin };
  for (const [name, value] of Object.entries(expected)) {
    if (client[name] !== value) throw refused(`the answer has another ${name}`);
  }
  if (crossOrigin === true) {
    throw new ClientError(
      'passkey_wrong_site',
      'a page of another site contains this one: open the app in a tab of its own, or use the password',
    );
  }
  const data = new Uint8Array(authenticatorData);
  const site = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(rpId));
  if (encodeBase64url(data.subarray(0, 32)) !== encodeBase64url(new Uint8Array(site))) {
    throw refused('the answer is of another domain');
  }
  if (((data[32] ?? 0) & presentAndVerified) !== presentAndVerified) {
    throw refused('the authenticator did not verify the person');
  }
}

function readClientData(bytes: ArrayBuffer): Readonly<Record<string, unknown>> {
  try {
    return { ...JSON.parse(new TextDecoder().decode(bytes)) };
  } catch {
    return {};
  }
}

/** The 32 bytes of an output, so that they can be zeroed where they are. */
function outputOf(output: Bytes | undefined): Uint8Array | undefined {
  if (output === undefined) return undefined;
  const bytes = ArrayBuffer.isView(output)
    ? new Uint8Array(output.buffer, output.byteOffset, output.byteLength)
    : new Uint8Array(output);
  return bytes.length === 32 ? bytes : undefined;
}

function unavailable(reason: string): ClientError {
  return new ClientError('passkey_unavailable', `${reason}: use the password`);
}

function refused(reason: string, options?: { readonly cause: unknown }): ClientError {
  return new ClientError('passkey_refused', `${reason}: try again, or use the password`, options);
}
