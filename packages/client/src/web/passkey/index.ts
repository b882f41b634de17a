/** The entry for pages that wrap a key with a passkey, in addition to a password (decision 0043). */

export type {
  NewPasskeyOptions,
  OpenedKey,
  OpenPasskeyOptions,
} from './passkey.ts';
export { createPasskey, openWithPasskey, removePasskey } from './passkey.ts';
export { isPasskeyDocument, PasskeyDocument, type PasskeyPurpose } from './passkey-document.ts';
export { type PasskeyStatus, passkeyStatus } from './passkey-status.ts';
