import { createRequire } from 'node:module';

/** The part of `sodium-native` that is used. */
export interface Sodium {
  crypto_sign_verify_detached(
    signature: Uint8Array,
    message: Uint8Array,
    publicKey: Uint8Array,
  ): boolean;
}

/** Loads libsodium, or says why it cannot: the package is optional, and has no types to import. */
export function loadSodium(): Sodium | string {
  try {
    return createRequire(import.meta.url)('sodium-native');
  } catch (error) {
    return String(error);
  }
}
