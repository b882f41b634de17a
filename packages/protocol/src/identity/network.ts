import { computeAsync } from '../crypto/compute-async.ts';
import type { Primitives } from '../crypto/primitives.ts';
import { encodeBase64url } from '../encoding/base64url.ts';
import { utf8 } from '../encoding/bytes.ts';
import { badRequest } from '../errors.ts';
import { canonicalTwice, canonicalWith } from '../json/canonical.ts';
import type { JsonObject } from '../json/types.ts';

export interface NetworkOptions {
  /** The context string `neo:<magic>:<registry>`, from trusted configuration (01 §1). */
  readonly context: string;
  /** The service word, lowercase; `svc` by default (01 §0). */
  readonly word?: string;
  readonly primitives: Primitives;
}

/**
 * The trusted facts that every signing, hashing and derivation input depends on: the network
 * context, the service word, and the primitives that compute with them. Built once from
 * configuration and passed to what needs it; the only place that knows the word.
 *
 * @example
 * const network = new Network({ context: `neo:860833102:0x${'01'.repeat(20)}`, primitives });
 * network.type('message.envelope'); // 'svc.message.envelope'
 */
export class Network {
  readonly context: string;
  /** Network magic in decimal, as in account IDs. */
  readonly magic: string;
  /** Script hash text of the registry contract. */
  readonly registry: string;
  /** Lowercase service word. */
  readonly word: string;
  /** The word with a capital initial, for headers and salt labels. */
  readonly title: string;
  readonly primitives: Primitives;

  /** @throws TypeError for a context or word that is not in its one form (N1, N2) */
  constructor({ context, word = 'svc', primitives }: NetworkOptions) {
    const parts = parseNetworkContext(context);
    if (parts === undefined) throw new TypeError('network context is not neo:<magic>:<registry>');
    if (!/^[a-z][a-z0-9]{0,31}$/.test(word)) throw new TypeError('service word is not lowercase');
    this.context = context;
    this.magic = parts.magic;
    this.registry = parts.registry;
    this.word = word;
    this.title = word.charAt(0).toUpperCase() + word.slice(1);
    this.primitives = primitives;
  }

  /** Returns a `$type` of this network: `type('profile')` is `svc.profile`. */
  type(name: string): string {
    return `${this.word}.${name}`;
  }

  /** The path prefix of the client API, also the recommended base path: `/svc/v1`. */
  get pathPrefix(): string {
    return `/${this.word}/v1`;
  }

  /** The HTTP header that carries a session token, lowercase: `x-svc-session`. */
  get sessionHeader(): string {
    return `x-${this.word}-session`;
  }

  /** Salt of a key derivation: SHA-256 of `Svc/<label>` (01 §5.4). */
  salt(label: string): Uint8Array {
    return this.primitives.sha256(utf8(`${this.title}/${label}`));
  }

  /**
   * Network-bound JSON bytes (01 §4): the object without the root members in `omit`, with
   * `$context` at its root, as Canonical JSON in UTF-8.
   *
   * @throws ProtocolError `bad_request` for an object that carries `$context` itself (K2)
   */
  bytes(object: JsonObject, omit: readonly string[] = []): Uint8Array {
    return utf8(canonicalWith(object, this.#binding(object, omit)));
  }

  /**
   * Formats an object once for both: its Canonical JSON, and the text of its network-bound bytes.
   *
   * @throws ProtocolError as {@link bytes}
   */
  texts(object: JsonObject, omit: readonly string[] = []): BoundTexts {
    const { complete, changed } = canonicalTwice(object, this.#binding(object, omit));
    return { complete, bound: changed };
  }

  /**
   * Runs work that verifies or opens what it was given, with the costly computations on other threads
   * if the primitives have that. The work must be pure: it may run twice.
   *
   * @throws what the work throws
   * @example
   * const request = { account, deviceId: device.deviceId, after: -1 };
   * await network.computeAsync((each) => verifyTimelinePage(each, page, request));
   */
  computeAsync<T>(work: (network: Network) => T): Promise<T> {
    const { context, word } = this;
    return computeAsync(this.primitives, (primitives) =>
      work(primitives === this.primitives ? this : new Network({ context, word, primitives })),
    );
  }

  #binding(object: JsonObject, omit: readonly string[]) {
    if (Object.hasOwn(object, '$context')) throw badRequest('', '$context is never transmitted');
    return { omit, add: { $context: this.context } };
  }

  /** Network-bound JSON hash of a complete object: `sha256:` and 43 characters (01 §4.1). */
  hash(object: JsonObject, omit: readonly string[] = []): string {
    return sha256Text(this.primitives, this.bytes(object, omit));
  }
}

/** Canonical texts of an object. */
export interface BoundTexts {
  readonly complete: string;
  /** Without some root members, with `$context`: the text of what is signed or hashed. */
  readonly bound: string;
}

/**
 * Returns the text form of the SHA-256 of raw bytes (01 §4.1).
 *
 * @example
 * sha256Text(primitives, plaintext); // 'sha256:…'
 */
export function sha256Text(primitives: Primitives, bytes: Uint8Array): string {
  return `sha256:${encodeBase64url(primitives.sha256(bytes))}`;
}

/**
 * Returns the parts of a context string, or `undefined` if it is not in its one form (01 N1, N2).
 */
export function parseNetworkContext(text: string): { magic: string; registry: string } | undefined {
  const match = /^neo:(0|[1-9][0-9]{0,9}):(0x[0-9a-f]{40})$/.exec(text);
  const [, magic, registry] = match ?? [];
  if (magic === undefined || registry === undefined || Number(magic) > 0xffff_ffff) {
    return undefined;
  }
  return { magic, registry };
}
