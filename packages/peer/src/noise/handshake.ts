/** The handshake Noise_XX_25519_ChaChaPoly_SHA256 (07 §B2, §B3): messages in, messages out. */
import { PeerError } from '../errors.ts';
import { CipherState, maxNoiseMessage, tagBytes } from './cipher.ts';
import {
  dhBytes,
  generateNoiseKeys,
  hkdf,
  type NoiseKeyPair,
  sha256,
  sharedSecret,
} from './keys.ts';

/** Exactly 32 bytes, so it is the first hash itself. */
const protocolName = Buffer.from('Noise_XX_25519_ChaChaPoly_SHA256');

/** Keys of both directions after a handshake. */
export interface NoiseKeys {
  readonly sending: CipherState;
  readonly receiving: CipherState;
}

/** The hash of all that was exchanged, and the keys derived from all shared secrets so far. */
class SymmetricState {
  #hash: Buffer = Buffer.from(protocolName);
  #chainingKey: Buffer = Buffer.from(protocolName);
  #cipher: CipherState | undefined;

  mixHash(data: Uint8Array): void {
    this.#hash = sha256(this.#hash, data);
  }

  /** Mixes in a shared secret and zeroes it. */
  mixKey(secret: Uint8Array): void {
    const [chainingKey, key] = hkdf(this.#chainingKey, secret);
    secret.fill(0);
    this.destroy();
    this.#chainingKey = chainingKey;
    this.#cipher = new CipherState(key);
  }

  /** Encrypts, once there is a key, and mixes the result into the hash. */
  seal(plaintext: Uint8Array): Uint8Array {
    let sealed = plaintext;
    if (this.#cipher !== undefined) {
      const { ciphertext, tag } = this.#cipher.encrypt(plaintext, this.#hash);
      sealed = Buffer.concat([ciphertext, tag]);
    }
    this.mixHash(sealed);
    return sealed;
  }

  open(sealed: Uint8Array): Uint8Array {
    const plaintext = this.#cipher?.decrypt(sealed, this.#hash) ?? sealed;
    this.mixHash(sealed);
    return plaintext;
  }

  /** Bytes that a sealed text has more than its plaintext. */
  get overhead(): number {
    return this.#cipher === undefined ? 0 : tagBytes;
  }

  split(): [CipherState, CipherState] {
    const [first, second] = hkdf(this.#chainingKey, new Uint8Array(0));
    this.destroy();
    return [new CipherState(first), new CipherState(second)];
  }

  destroy(): void {
    this.#chainingKey.fill(0);
    this.#cipher?.destroy();
  }
}

/** What each message carries before its payload; `es` and `se` are named from the initiator. */
const pattern = [['e'], ['e', 'ee', 's', 'es'], ['s', 'se']] as const;

export interface NoiseHandshakeOptions {
  readonly role: 'initiator' | 'responder';
  readonly staticKeys: NoiseKeyPair;
  /** For tests; a new pair by default. */
  readonly ephemeralKeys?: NoiseKeyPair;
  /** libp2p has none. */
  readonly prologue?: Uint8Array;
}

/** One side of a handshake. The caller writes and reads messages in turn, the initiator first. */
export class NoiseHandshake {
  readonly #state = new SymmetricState();
  readonly #initiator: boolean;
  readonly #static: NoiseKeyPair;
  readonly #ephemeral: NoiseKeyPair;
  #remoteStatic: Uint8Array | undefined;
  #remoteEphemeral: Uint8Array | undefined;
  #next = 0;

  constructor(options: NoiseHandshakeOptions) {
    this.#initiator = options.role === 'initiator';
    this.#static = options.staticKeys;
    this.#ephemeral = options.ephemeralKeys ?? generateNoiseKeys();
    this.#state.mixHash(options.prologue ?? new Uint8Array(0));
  }

  /** The peer's static key, after the message that carries it. */
  get remoteStatic(): Uint8Array {
    if (this.#remoteStatic === undefined) throw new TypeError('no static key of the peer yet');
    return this.#remoteStatic;
  }

  /** Writes the next message. @throws PeerError `limit` if it would exceed 65,535 bytes */
  write(payload: Uint8Array): Uint8Array {
    const parts: Uint8Array[] = [];
    for (const token of this.#takeTokens(true)) {
      if (token === 'e') {
        this.#state.mixHash(this.#ephemeral.publicKey);
        parts.push(this.#ephemeral.publicKey);
      } else if (token === 's') {
        parts.push(this.#state.seal(this.#static.publicKey));
      } else {
        this.#mixShared(token);
      }
    }
    parts.push(this.#state.seal(payload));
    const message = Buffer.concat(parts);
    if (message.length > maxNoiseMessage) {
      throw new PeerError('limit', 'noise: handshake message over 65,535 bytes');
    }
    return message;
  }

  /**
   * Reads the peer's next message.
   *
   * @returns its payload
   * @throws PeerError `protocol` if the message is too short, not authentic, or a key is of small order
   */
  read(message: Uint8Array): Uint8Array {
    let rest = message;
    const take = (length: number) => {
      if (rest.length < length) throw new PeerError('protocol', 'noise: message is too short');
      const taken = rest.subarray(0, length);
      rest = rest.subarray(length);
      return taken;
    };
    for (const token of this.#takeTokens(false)) {
      if (token === 'e') {
        this.#remoteEphemeral = Buffer.from(take(dhBytes));
        this.#state.mixHash(this.#remoteEphemeral);
      } else if (token === 's') {
        const sealed = take(dhBytes + this.#state.overhead);
        this.#remoteStatic = Buffer.from(this.#state.open(sealed));
      } else {
        this.#mixShared(token);
      }
    }
    return this.#state.open(rest);
  }

  /** Returns the keys for messages after the handshake, and zeroes those of the handshake. */
  finish(): NoiseKeys {
    if (this.#next !== pattern.length) throw new TypeError('the handshake is not finished');
    const [first, second] = this.#state.split();
    return this.#initiator
      ? { sending: first, receiving: second }
      : { sending: second, receiving: first };
  }

  /** Zeroes the keys of a handshake that failed. */
  destroy(): void {
    this.#state.destroy();
  }

  #takeTokens(writing: boolean): readonly ('e' | 's' | 'ee' | 'es' | 'se')[] {
    const tokens = pattern[this.#next];
    if (tokens === undefined || (this.#next % 2 === 0) !== (this.#initiator === writing)) {
      throw new TypeError('not the turn of this side');
    }
    this.#next += 1;
    return tokens;
  }

  #mixShared(token: 'ee' | 'es' | 'se'): void {
    const ownIsEphemeral = token === 'ee' || (token === 'es') === this.#initiator;
    const remoteIsEphemeral = token === 'ee' || (token === 'se') === this.#initiator;
    const own = ownIsEphemeral ? this.#ephemeral : this.#static;
    const remote = remoteIsEphemeral ? this.#remoteEphemeral : this.#remoteStatic;
    this.#state.mixKey(sharedSecret(own, remote as Uint8Array));
  }
}
