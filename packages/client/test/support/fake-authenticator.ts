/**
 * `navigator.credentials` of a page, with one authenticator that computes PRF as WebAuthn level 3
 * says, so that tests on Node decide what it answers.
 */
import { createHash, createHmac, randomBytes } from 'node:crypto';
import { decodeBase64url, encodeBase64url } from '@posthouse/protocol';
import { vi } from 'vitest';

// biome-ignore lint/suspicious/noExplicitAny: options and answers of a browser, of which the project has no types.
type Json = any;

const sha256 = (...parts: (string | Uint8Array)[]) => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};

/** An array buffer of its own, as browsers return them. */
const bufferOf = (bytes: Uint8Array): ArrayBuffer => Uint8Array.from(bytes).buffer;

export class FakeAuthenticator {
  /** Where it computes PRF outputs: at creation too, only for an existing passkey, or never. */
  prf: 'always' | 'existing' | 'never' | 'enabled only' = 'always';
  /** The error of the next calls, by name of a DOMException. */
  failure: string | undefined;
  /** Changes an answer before the page has it. */
  alter: (answer: Json) => void = () => undefined;
  /** Changes what the browser says of the call. */
  clientData: object = {};
  /** Flags of the authenticator's data: present and verified. */
  flags = 0b101;
  /** Options of the calls, in order. */
  readonly calls: { readonly method: 'create' | 'get'; readonly publicKey: Json }[] = [];
  /** PRF outputs that the page was given. */
  readonly outputs: Uint8Array[] = [];
  /** Credential IDs that the page said to be unknown. */
  readonly hidden: string[] = [];
  /** Secrets by credential ID. */
  readonly #secrets = new Map<string, Uint8Array>();

  /** Puts the page into the globals; `vi.unstubAllGlobals` removes it. */
  install({ hostname = 'app.example' } = {}): void {
    vi.stubGlobal('isSecureContext', true);
    vi.stubGlobal('location', { hostname, origin: `https://${hostname}` });
    vi.stubGlobal('navigator', { credentials: this });
    vi.stubGlobal('PublicKeyCredential', {
      signalUnknownCredential: async ({ credentialId }: { credentialId: string }) => {
        this.hidden.push(credentialId);
      },
    });
  }

  /** Becomes another authenticator that has the same credential IDs. */
  replaceSecrets(): void {
    for (const id of this.#secrets.keys()) this.#secrets.set(id, randomBytes(32));
  }

  async create({ publicKey, signal }: Json): Promise<Json> {
    this.#begin('create', publicKey, signal);
    if (publicKey.excludeCredentials.some(({ id }: Json) => this.#secrets.has(encodeBase64url(id))))
      throw new DOMException('', 'InvalidStateError');
    const id = encodeBase64url(randomBytes(16));
    this.#secrets.set(id, randomBytes(32));
    const first =
      this.prf === 'always' ? this.#output(id, publicKey.extensions.prf.eval.first) : undefined;
    const prf = this.prf === 'never' ? undefined : { enabled: true, results: first && { first } };
    const data = this.#authenticatorData(publicKey.rp.id);
    return this.#answer(
      id,
      { prf },
      {
        clientDataJSON: this.#clientDataJSON('webauthn.create', publicKey),
        getAuthenticatorData: () => data,
      },
    );
  }

  async get({ publicKey, signal }: Json): Promise<Json> {
    this.#begin('get', publicKey, signal);
    const ids: string[] = publicKey.allowCredentials.map(({ id }: Json) => encodeBase64url(id));
    const id = ids.find((one) => this.#secrets.has(one));
    if (id === undefined) throw new DOMException('', 'NotAllowedError');
    const { first: salt } = publicKey.extensions.prf.evalByCredential[id];
    const isComputed = this.prf === 'always' || this.prf === 'existing';
    const prf = isComputed ? { results: { first: this.#output(id, salt) } } : undefined;
    return this.#answer(
      id,
      { prf },
      {
        clientDataJSON: this.#clientDataJSON('webauthn.get', publicKey),
        authenticatorData: this.#authenticatorData(publicKey.rpId),
      },
    );
  }

  #begin(method: 'create' | 'get', publicKey: Json, signal?: AbortSignal): void {
    this.calls.push({ method, publicKey });
    if (signal?.aborted) throw new DOMException('', 'AbortError');
    if (this.failure !== undefined) throw new DOMException('', this.failure);
  }

  /** What it computes for a salt. */
  prfOf(id: string, salt: Uint8Array): Uint8Array {
    const secret = this.#secrets.get(id) as Uint8Array;
    return createHmac('sha256', secret).update(sha256('WebAuthn PRF\0', salt)).digest();
  }

  #output(id: string, salt: Uint8Array): ArrayBuffer {
    const output = bufferOf(this.prfOf(id, salt));
    this.outputs.push(new Uint8Array(output));
    return output;
  }

  #clientDataJSON(type: string, { challenge }: Json): ArrayBuffer {
    const { origin } = (globalThis as Json).location;
    const data = { type, challenge: encodeBase64url(challenge), origin, crossOrigin: false };
    return bufferOf(new TextEncoder().encode(JSON.stringify({ ...data, ...this.clientData })));
  }

  #authenticatorData(rpId: string): ArrayBuffer {
    return bufferOf(Buffer.concat([sha256(rpId), Buffer.of(this.flags), Buffer.alloc(4)]));
  }

  #answer(id: string, extensions: object, response: object): Json {
    const rawId = bufferOf(decodeBase64url(id) as Uint8Array);
    const answer = {
      id,
      rawId,
      response,
      extensions,
      getClientExtensionResults: () => answer.extensions,
    };
    this.alter(answer);
    return answer;
  }
}
