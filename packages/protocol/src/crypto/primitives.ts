/**
 * The cryptographic primitives the protocol stands on, as one value that is passed in: the same
 * rules run on `@noble/*` in a browser and on `node:crypto` on a server. Everything is synchronous
 * but {@link AsyncPrimitives}; a caller that verifies signatures elsewhere uses the
 * {@link SignatureCheck}s.
 *
 * Byte lengths: SHA-256 32, RIPEMD-160 20, Ed25519 seed 32 / public key 32 / signature 64, P-256
 * private key 32 / compressed public key 33 / signature 64 (`r` then `s`), X25519 keys 32, AES-GCM
 * key 32 / nonce 12 / tag 16 at the end of the ciphertext.
 */
export interface Primitives {
  sha256(data: Uint8Array): Uint8Array;
  ripemd160(data: Uint8Array): Uint8Array;
  /** HKDF-SHA-256 (chapter 01, section 5.4). */
  hkdfSha256(input: HkdfInput): Uint8Array;
  hmacSha256(key: Uint8Array, data: Uint8Array): Uint8Array;
  readonly ed25519: SignatureScheme;
  /** Signatures follow RFC 6979; verification accepts both forms of `s` (chapter 01, S2). */
  readonly p256: SignatureScheme;
  readonly x25519: {
    publicKey(privateKey: Uint8Array): Uint8Array;
    /** Returns the shared secret, or `undefined` if it is all zero (chapter 01, E2 to E4). */
    shared(privateKey: Uint8Array, publicKey: Uint8Array): Uint8Array | undefined;
    /** As `publicKey` of the private key and `shared`, in less time than both. */
    agree(privateKey: Uint8Array, publicKey: Uint8Array): KeyAgreement | undefined;
  };
  readonly aesGcm: {
    seal(input: AeadInput): Uint8Array;
    /** Returns the plaintext, or `undefined` if authentication fails. */
    open(input: AeadInput): Uint8Array | undefined;
  };
  /** What the platform computes on other threads; absent if it has nothing of the kind. */
  readonly asynchronous?: AsyncPrimitives;
}

/**
 * The costly primitives, computed by the platform while the calling thread does other work. They
 * agree with the synchronous ones on every input, and never reject. See {@link computeAsync}.
 */
export interface AsyncPrimitives {
  /** As `verify` of the check's scheme. */
  verify(check: SignatureCheck): Promise<boolean>;
  /** As `shared` of X25519. */
  shared(privateKey: Uint8Array, publicKey: Uint8Array): Promise<Uint8Array | undefined>;
}

export interface SignatureScheme {
  publicKey(privateKey: Uint8Array): Uint8Array;
  sign(privateKey: Uint8Array, message: Uint8Array): Uint8Array;
  /** Never throws: what is malformed does not verify. */
  verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean;
}

/** A shared secret, and the public key that the peer derives it from. */
export interface KeyAgreement {
  readonly publicKey: Uint8Array;
  readonly shared: Uint8Array;
}

export interface HkdfInput {
  readonly secret: Uint8Array;
  readonly salt: Uint8Array;
  readonly info: Uint8Array;
  readonly length: number;
}

/** For `seal`, `data` is the plaintext; for `open`, ciphertext followed by the tag. */
export interface AeadInput {
  readonly key: Uint8Array;
  readonly nonce: Uint8Array;
  readonly aad: Uint8Array;
  readonly data: Uint8Array;
}

/** A cryptographically secure source of bytes, passed in. */
export type Random = (length: number) => Uint8Array;

/** One signature to verify: everything needed, nothing else. */
export interface SignatureCheck {
  readonly scheme: 'ed25519' | 'p256';
  readonly publicKey: Uint8Array;
  readonly message: Uint8Array;
  readonly signature: Uint8Array;
}
